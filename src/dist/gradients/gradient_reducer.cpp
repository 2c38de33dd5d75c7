#include "dist/gradients/gradient_reducer.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace lockstep {
namespace {

using torch::autograd::variable_list;

// Runs after autograd has added a gradient to the parameter's grad(), or found nothing to add.
class AfterAccumulation final : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterAccumulation(std::function<void()> action) : action_(std::move(action)) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    action_();
    return outputs;
  }

 private:
  std::function<void()> action_;
};

// Buckets are cut at multiples of this, so that no two share a cache line.
constexpr int64_t kCutElements = 64;

}  // namespace

struct GradientReducer::Hooked {
  ReducedParameter parameter = {};
  std::size_t first_bucket = 0, last_bucket = 0;  // inclusive; by ascending index
  bool ready = false;
  c10::intrusive_ptr<torch::autograd::Node> node;
  uintptr_t key = 0;
};

GradientReducer::GradientReducer(World& world, CommHook& hook,
                                 std::vector<ReducedParameter> parameters, torch::Tensor gradients,
                                 const ReducerOptions& options)
    : world_(world), hook_(hook), gradients_(std::move(gradients)) {
  TORCH_CHECK(gradients_.dim() == 1 && gradients_.is_contiguous(), "gradients must be flat");
  if (world_.size() == 1 && !options.even_alone) return;
  int64_t end = 0;
  for (ReducedParameter& p : parameters) {
    TORCH_CHECK(p.offset >= end && p.offset + p.numel <= gradients_.numel(),
                "parameters must lie in the flat array in ascending order");
    end = p.offset + p.numel;
    parameters_.emplace_back().parameter = std::move(p);
  }
  cut_buckets(options);
  for (std::size_t i = 0; i < parameters_.size(); ++i) add_hook(i);
}

GradientReducer::~GradientReducer() {
  for (Hooked& h : parameters_) {
    if (h.node) h.node->del_post_hook(h.key);
  }
}

void GradientReducer::cut_buckets(const ReducerOptions& options) {
  TORCH_CHECK(options.bucket_bytes > 0 && options.first_bucket_bytes > 0, "buckets need a size");
  int64_t bytes = options.first_bucket_bytes;
  for (int64_t end = gradients_.numel(); end > 0;) {
    int64_t count = std::max(bytes / static_cast<int64_t>(gradients_.element_size()), kCutElements);
    int64_t begin = std::max<int64_t>(0, end - count) / kCutElements * kCutElements;
    if (options.whole_parameters) begin = begin_of_parameter_at(begin);
    buckets_.push_back({begin, end});
    end = begin;
    bytes = options.bucket_bytes;
  }
  for (Hooked& h : parameters_) {
    if (h.parameter.numel == 0) continue;
    auto bucket_of = [this](int64_t element) {
      auto holds = [element](const Bucket& b) { return element >= b.begin; };
      return std::find_if(buckets_.begin(), buckets_.end(), holds) - buckets_.begin();
    };
    h.first_bucket = bucket_of(h.parameter.offset + h.parameter.numel - 1);
    h.last_bucket = bucket_of(h.parameter.offset);
    for (std::size_t b = h.first_bucket; b <= h.last_bucket; ++b) ++buckets_[b].parameters;
  }
}

// Returns where the parameter begins that contains the element or precedes it.
int64_t GradientReducer::begin_of_parameter_at(int64_t element) const {
  int64_t begin = 0;
  for (const Hooked& h : parameters_) {
    if (h.parameter.offset > element) break;
    begin = h.parameter.offset;
  }
  return begin;
}

void GradientReducer::add_hook(std::size_t parameter) {
  Hooked& h = parameters_[parameter];
  // The node is kept alive here: the variable itself refers to its accumulator weakly.
  h.node = torch::autograd::impl::grad_accumulator(h.parameter.variable);
  TORCH_CHECK(h.node, "parameter ", parameter, " is not a leaf that requires a gradient");
  auto action = [this, parameter] { mark_ready(parameter); };
  h.key = h.node->add_post_hook(std::make_unique<AfterAccumulation>(action));
}

void GradientReducer::prepare(bool will_reduce, double unit) {
  std::scoped_lock lock(mutex_);
  TORCH_CHECK(running_.empty(), "finish() is due before the next prepare()");
  reducing_ = will_reduce && !buckets_.empty();
  unit_ = unit;
  next_ = 0;
  overlapped_.reset();
  for (Bucket& b : buckets_) b.pending = b.parameters;
  for (Hooked& h : parameters_) h.ready = false;
}

void GradientReducer::mark_ready(std::size_t parameter) {
  std::scoped_lock lock(mutex_);
  if (!reducing_) return;
  Hooked& h = parameters_.at(parameter);
  TORCH_CHECK(
      !h.ready, "parameter ", parameter,
      " got a second gradient after its bucket may have left: prepare() belongs before each "
      "backward pass");
  h.ready = true;
  if (h.parameter.numel == 0) return;
  for (std::size_t b = h.first_bucket; b <= h.last_bucket; ++b) --buckets_[b].pending;
  start_ready_buckets();
}

void GradientReducer::start_ready_buckets() {
  for (; next_ < buckets_.size() && buckets_[next_].pending == 0; ++next_) {
    const Bucket& b = buckets_[next_];
    torch::Tensor slice = gradients_.narrow(0, b.begin, b.end - b.begin);
    running_.push_back(hook_.start({static_cast<int>(next_), slice, b.begin, unit_}));
  }
}

void GradientReducer::start_rest() {
  std::scoped_lock lock(mutex_);
  if (!reducing_ || overlapped_) return;
  overlapped_ = next_;
  for (Bucket& b : buckets_) b.pending = 0;
  start_ready_buckets();
}

ReduceTimings GradientReducer::finish() {
  start_rest();
  std::scoped_lock lock(mutex_);
  ReduceTimings timings;
  if (!reducing_) return timings;
  reducing_ = false;
  auto start = std::chrono::steady_clock::now();
  timings.overlapped_buckets = static_cast<int>(overlapped_.value_or(0));
  std::vector<Completion> running = std::exchange(running_, {});
  for (const Completion& completion : running) completion();
  std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
  timings.wait_seconds = waited.count();
  timings.bytes = static_cast<int64_t>(gradients_.nbytes());
  timings.buckets = bucket_count();
  return timings;
}

}  // namespace lockstep
