// Keeps 16-bit copies of the buckets of gradients, as hooks send them: one for each bucket,
// allocated once.
#pragma once

#include <torch/types.h>

#include <vector>

#include "dist/gradients/comm_hooks.h"

namespace lockstep {

class NarrowCopies {
 public:
  explicit NarrowCopies(at::ScalarType type) : type_(type) {}

  // Returns the bucket with its gradients rounded to the type; valid until the
  // next call for that bucket.
  GradientBucket round(const GradientBucket& bucket) {
    torch::NoGradGuard no_grad;
    auto index = static_cast<std::size_t>(bucket.index);
    if (copies_.size() <= index) copies_.resize(index + 1);
    torch::Tensor& copy = copies_[index];
    if (!copy.defined() || copy.numel() != bucket.gradients.numel()) {
      copy = torch::empty_like(bucket.gradients, type_);
    }
    copy.copy_(bucket.gradients);
    GradientBucket narrow = bucket;
    narrow.gradients = copy;
    return narrow;
  }

 private:
  at::ScalarType type_;
  std::vector<torch::Tensor> copies_;  // by bucket
};

}  // namespace lockstep
