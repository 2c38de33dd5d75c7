#include "dist/gradients/powersgd_hook.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"

namespace lockstep {
namespace {

constexpr uint64_t kSeed = 0x506f776572534744;  // any number, the same on all ranks

class PowerSgdHook final : public CommHook {
 public:
  PowerSgdHook(const HookContext& context, std::unique_ptr<CommHook> next);
  Completion start(const GradientBucket& bucket) override;
  std::vector<HookArray> state() override;
  void restored() override { has_q_ = counters_[1].item<int64_t>() != 0; }

 private:
  struct Part {  // one parameter of a bucket
    GradientShape shape;
    int64_t at = 0;  // where its numbers, or its P, begin in the first message
    int64_t q = -1;  // where its Q begins in q_; -1: sent whole
  };
  struct Bucket {
    std::vector<Part> parts;
    int64_t q_begin = 0, q_end = 0;  // in q_
    torch::Tensor first;             // the first message: [numbers sent whole, and P]
    torch::Tensor gradients;
    int64_t begin = 0;
    double unit = 1;
    Completion first_done = {}, second_done = {};
  };

  void begin_step();
  Bucket& layout(const GradientBucket& bucket);
  void start_second_messages();
  void decompress(Bucket& b);

  torch::Tensor matrix(const Bucket& b, const Part& p) const {  // [rows, columns]
    return b.gradients.narrow(0, p.shape.offset - b.begin, p.shape.numel())
        .view({p.shape.rows, p.shape.columns});
  }
  torch::Tensor p_of(const Bucket& b, const Part& p) const {  // [rows, rank]
    return b.first.narrow(0, p.at, p.shape.rows * config_.rank).view({p.shape.rows, config_.rank});
  }
  torch::Tensor q_of(const Part& p) const {  // [columns, rank]
    return q_.narrow(0, p.q, p.shape.columns * config_.rank).view({p.shape.columns, config_.rank});
  }
  torch::Tensor error_of(const Part& p) const {  // [rows, columns]
    return error_.narrow(0, p.shape.offset, p.shape.numel()).view({p.shape.rows, p.shape.columns});
  }
  uint64_t seed_of(int64_t place) const {
    auto step = static_cast<uint64_t>(counters_[0].item<int64_t>());
    return combine_keys(combine_keys(kSeed, step), static_cast<uint64_t>(place));
  }

  PowerSgdConfig config_;
  std::vector<GradientShape> parameters_;
  double ranks_;
  std::unique_ptr<CommHook> next_;
  std::vector<Bucket> buckets_;         // by index, laid out when first seen
  std::vector<std::size_t> in_flight_;  // buckets whose first message was started
  torch::Tensor error_;                 // fp32 [total], in units of the mean gradient
  torch::Tensor q_;                     // fp32, the Q of all parameters one after the other
  torch::Tensor counters_;              // int64 [2]: steps begun; whether q_ is of the last step
  bool has_q_ = false, spoilt_ = false;
};

PowerSgdHook::PowerSgdHook(const HookContext& context, std::unique_ptr<CommHook> next)
    : config_(context.config.powersgd),
      parameters_(context.parameters),
      ranks_(context.world.size()),
      next_(std::move(next)),
      counters_(torch::zeros({2}, torch::kInt64)) {
  int64_t total = 0, q = 0;
  for (const GradientShape& p : parameters_) {
    total = std::max(total, p.offset + p.numel());
    if (config_.compresses(p)) q += p.columns * config_.rank;
  }
  q_ = torch::zeros({q}, torch::kFloat32);
  if (config_.error_feedback) error_ = torch::zeros({total}, torch::kFloat32);
}

std::vector<HookArray> PowerSgdHook::state() {
  counters_[1] = has_q_ && !spoilt_;
  std::vector<HookArray> out{{"powersgd.counters", counters_}, {"powersgd.q", q_}};
  if (error_.defined()) out.push_back({"powersgd.error", error_});
  return out;
}

void PowerSgdHook::begin_step() {
  counters_[0] += 1;
  if (!config_.warm_start || spoilt_) has_q_ = false;
  spoilt_ = false;
}

PowerSgdHook::Bucket& PowerSgdHook::layout(const GradientBucket& bucket) {
  auto index = static_cast<std::size_t>(bucket.index);
  if (buckets_.size() <= index) buckets_.resize(index + 1);
  Bucket& b = buckets_[index];
  b.gradients = bucket.gradients;
  b.unit = bucket.unit;
  if (b.first.defined()) return b;
  // Moves both to the device, once: q_ and error_ live where the gradients do.
  q_ = q_.to(bucket.gradients.device());
  if (error_.defined()) error_ = error_.to(bucket.gradients.device());
  b.begin = bucket.begin;
  const int64_t end = bucket.begin + bucket.gradients.numel();
  int64_t at = 0, q = 0;
  bool any = false;
  for (const GradientShape& p : parameters_) {
    const bool small = config_.compresses(p);
    const int64_t q_numbers = small ? p.columns * config_.rank : 0;
    if (p.offset >= b.begin && p.offset < end) {
      TORCH_CHECK(p.offset + p.numel() <= end, "PowerSGD needs whole parameters in a bucket");
      if (!any) b.q_begin = q;
      any = true;
      b.parts.push_back({p, at, small ? q : -1});
      at += small ? p.rows * config_.rank : p.numel();
      b.q_end = q + q_numbers;
    }
    q += q_numbers;
  }
  b.first = torch::empty({at}, bucket.gradients.options());
  return b;
}

Completion PowerSgdHook::start(const GradientBucket& bucket) {
  torch::NoGradGuard no_grad;
  if (bucket.index == 0) begin_step();
  if (counters_[0].item<int64_t>() <= config_.start_step) return next_->start(bucket);
  Bucket& b = layout(bucket);
  for (const Part& part : b.parts) {
    torch::Tensor m = matrix(b, part);
    if (part.q < 0) {
      b.first.narrow(0, part.at, part.shape.numel()).copy_(m.view({-1}));
      continue;
    }
    if (error_.defined()) m.add_(error_of(part), b.unit);
    torch::Tensor q = q_of(part), p = p_of(b, part);
    if (!has_q_) {
      at::Generator generator = at::detail::createCPUGenerator(seed_of(part.q));
      q.copy_(at::randn(q.sizes(), generator, torch::kFloat32));
    }
    orthogonalize(q, seed_of(part.q));
    at::mm_out(p, m, q);
  }
  b.first_done =
      next_->start({2 * bucket.index, b.first, b.begin, b.unit, ", factor P and what goes whole"});
  const auto index = static_cast<std::size_t>(bucket.index);
  in_flight_.push_back(index);
  return [this, index] {
    torch::NoGradGuard no_grad;
    start_second_messages();
    buckets_[index].second_done();
    decompress(buckets_[index]);
  };
}

// Starts those of all buckets at once, so that they share the network delay.
void PowerSgdHook::start_second_messages() {
  for (std::size_t index : std::exchange(in_flight_, {})) {
    Bucket& b = buckets_[index];
    b.first_done();
    for (const Part& part : b.parts) {
      if (part.q < 0) continue;
      torch::Tensor p = p_of(b, part), q = q_of(part);
      orthogonalize(p, seed_of(part.q));
      at::mm_out(q, matrix(b, part).t(), p);
    }
    torch::Tensor all_q = q_.narrow(0, b.q_begin, b.q_end - b.q_begin);
    b.second_done = [] {};
    if (all_q.numel() == 0) continue;
    const int message = 2 * static_cast<int>(index) + 1;
    b.second_done = next_->start({message, all_q, b.begin, b.unit, ", factor Q"});
  }
}

void PowerSgdHook::decompress(Bucket& b) {
  // All ranks decide alike, because every one has the sums.
  torch::Tensor all_q = q_.narrow(0, b.q_begin, b.q_end - b.q_begin);
  const bool finite = std::isfinite((b.first.sum() + all_q.sum()).item<double>());
  if (!finite) spoilt_ = true;
  has_q_ = true;
  for (const Part& part : b.parts) {
    torch::Tensor m = matrix(b, part);
    if (part.q < 0) {
      m.view({-1}).copy_(b.first.narrow(0, part.at, part.shape.numel()));
      continue;
    }
    const bool keep = error_.defined() && finite;
    torch::Tensor error = keep ? error_of(part) : torch::Tensor();
    if (keep) error.copy_(m);
    multiply_factors(p_of(b, part), q_of(part), m);
    if (keep) error.sub_(m, 1 / ranks_).mul_(1 / b.unit);
  }
}

}  // namespace

std::unique_ptr<CommHook> make_powersgd_hook(const HookContext& context,
                                             std::unique_ptr<CommHook> next) {
  return std::make_unique<PowerSgdHook>(context, std::move(next));
}

}  // namespace lockstep
