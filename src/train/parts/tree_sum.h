// Sums of gradients that do not depend on how many ranks took them: the parts of a step are added
// in pairs of neighbours, within a rank by this, and between ranks by kernels().sum.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace lockstep {

class TreeSum {
 public:
  // `leaves`: of this rank, a power of two.
  explicit TreeSum(int64_t leaves) : leaves_(leaves) {}

  // Takes the numbers out of `flat`, which is zero afterwards, as those of a leaf. Leaves come in
  // ascending order; those that are left out are zeros.
  void take(int64_t leaf, torch::Tensor flat);
  // Puts the sum of all leaves into `flat`.
  void put(torch::Tensor flat);

 private:
  void add(torch::Tensor leaf);

  int64_t leaves_, added_ = 0;
  std::vector<torch::Tensor> sums_;  // of 2^i leaves each, as the bits of added_ say
};

}  // namespace lockstep
