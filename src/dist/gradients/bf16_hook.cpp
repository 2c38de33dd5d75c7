#include "dist/gradients/bf16_hook.h"

#include <utility>

#include "dist/gradients/narrow_copies.h"

namespace lockstep {
namespace {

class Bf16Hook final : public CommHook {
 public:
  explicit Bf16Hook(std::unique_ptr<CommHook> next) : next_(std::move(next)) {}

  Completion start(const GradientBucket& bucket) override {
    GradientBucket narrow = copies_.round(bucket);
    Completion reduced = next_->start(narrow);
    return [reduced, narrow = narrow.gradients, wide = bucket.gradients] {
      reduced();
      torch::NoGradGuard no_grad;
      wide.copy_(narrow);
    };
  }

 private:
  std::unique_ptr<CommHook> next_;
  NarrowCopies copies_{torch::kBFloat16};
};

}  // namespace

std::unique_ptr<CommHook> make_bf16_hook(std::unique_ptr<CommHook> next) {
  return std::make_unique<Bf16Hook>(std::move(next));
}

}  // namespace lockstep
