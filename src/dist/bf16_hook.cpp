#include "dist/bf16_hook.h"

#include <utility>
#include <vector>

namespace lockstep {
namespace {

class Bf16Hook final : public CommHook {
 public:
  explicit Bf16Hook(std::unique_ptr<CommHook> next) : next_(std::move(next)) {}

  Completion start(const GradientBucket& bucket) override {
    torch::NoGradGuard no_grad;
    auto index = static_cast<std::size_t>(bucket.index);
    if (copies_.size() <= index) copies_.resize(index + 1);
    torch::Tensor& narrow = copies_[index];
    if (!narrow.defined() || narrow.numel() != bucket.gradients.numel()) {
      narrow = torch::empty_like(bucket.gradients, torch::kBFloat16);
    }
    narrow.copy_(bucket.gradients);
    GradientBucket small = bucket;
    small.gradients = narrow;
    Completion reduced = next_->start(small);
    return [reduced, narrow, wide = bucket.gradients] {
      reduced();
      torch::NoGradGuard no_grad;
      wide.copy_(narrow);
    };
  }

 private:
  std::unique_ptr<CommHook> next_;
  std::vector<torch::Tensor> copies_;  // by bucket, allocated once
};

}  // namespace

std::unique_ptr<CommHook> make_bf16_hook(std::unique_ptr<CommHook> next) {
  return std::make_unique<Bf16Hook>(std::move(next));
}

}  // namespace lockstep
