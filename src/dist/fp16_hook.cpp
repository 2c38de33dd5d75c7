#include "dist/fp16_hook.h"

#include <cmath>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

// What a mean gradient of 1 goes as, about, and units that are near enough to be left alone: sums
// over some thousand targets, or the loss scales of fp16 training.
constexpr double kGoodUnit = 1024, kLowest = 16, kHighest = 65536;

double wire_scale(double unit) {
  if (unit >= kLowest && unit <= kHighest) return 1;
  return std::exp2(std::round(std::log2(kGoodUnit / unit)));
}

class Fp16Hook final : public CommHook {
 public:
  explicit Fp16Hook(std::unique_ptr<CommHook> next) : next_(std::move(next)) {}

  Completion start(const GradientBucket& bucket) override {
    torch::NoGradGuard no_grad;
    auto index = static_cast<std::size_t>(bucket.index);
    if (copies_.size() <= index) copies_.resize(index + 1);
    torch::Tensor& narrow = copies_[index];
    if (!narrow.defined() || narrow.numel() != bucket.gradients.numel()) {
      narrow = torch::empty_like(bucket.gradients, torch::kHalf);
    }
    const double scale = wire_scale(bucket.unit);
    // Exact either way, but for numbers that fp32 itself can hardly hold.
    torch::Tensor wide = bucket.gradients;
    if (scale != 1) wide.mul_(scale);
    narrow.copy_(wide);
    GradientBucket small = bucket;
    small.gradients = narrow;
    Completion reduced = next_->start(small);
    return [this, reduced, narrow, scale, bucket] {
      reduced();
      finish(narrow, scale, bucket);
    };
  }

 private:
  void finish(const torch::Tensor& narrow, double scale, const GradientBucket& bucket) {
    torch::NoGradGuard no_grad;
    torch::Tensor wide = bucket.gradients;
    if (std::isfinite(narrow.sum(torch::kFloat32).item<double>())) {
      wide.copy_(narrow);
    } else {
      next_->start(bucket)();
    }
    if (scale != 1) wide.mul_(1 / scale);
  }

  std::unique_ptr<CommHook> next_;
  std::vector<torch::Tensor> copies_;  // by bucket, allocated once
};

}  // namespace

std::unique_ptr<CommHook> make_fp16_hook(std::unique_ptr<CommHook> next) {
  return std::make_unique<Fp16Hook>(std::move(next));
}

}  // namespace lockstep
