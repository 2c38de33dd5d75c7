// How the operations of nn/ compute: number format and which implementation.
#pragma once

#include <torch/types.h>

namespace lockstep {

struct Numerics {
  // Activations between layers and matrix products: kFloat or kBFloat16. The residual stream,
  // normalisation statistics, softmax and losses are fp32 always.
  at::ScalarType compute = at::kFloat;
  // True: lockstep's own kernels where there is one for the device. False: plain libtorch
  // operations and autograd, the reference that tests compare with.
  bool fused = true;
};

}  // namespace lockstep
