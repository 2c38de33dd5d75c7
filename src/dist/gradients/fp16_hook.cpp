#include "dist/gradients/fp16_hook.h"

#include <cmath>
#include <utility>

#include "dist/gradients/narrow_copies.h"

namespace lockstep {
namespace {

// kGoodUnit: about what a mean gradient of 1 is sent as. Units from kLowest to kHighest are left
// alone: sums over some thousand targets, or the loss scales of fp16 training.
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
    const double scale = wire_scale(bucket.unit);
    // The scaling is exact, except for numbers that fp32 itself can hardly represent.
    if (scale != 1) torch::Tensor(bucket.gradients).mul_(scale);
    GradientBucket narrow = copies_.round(bucket);
    Completion reduced = next_->start(narrow);
    return [this, reduced, narrow = narrow.gradients, scale, bucket] {
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
  NarrowCopies copies_{torch::kHalf};
};

}  // namespace

std::unique_ptr<CommHook> make_fp16_hook(std::unique_ptr<CommHook> next) {
  return std::make_unique<Fp16Hook>(std::move(next));
}

}  // namespace lockstep
