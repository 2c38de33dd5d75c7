#include "nn/pooling.h"

namespace lockstep {

torch::Tensor max_pool(const torch::Tensor& x, const Numerics& numerics) {
  TORCH_CHECK(x.dim() == 4 && x.scalar_type() == numerics.compute, "max_pool: x is ",
              x.scalar_type(), " ", x.sizes());
  return at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
}

torch::Tensor average_pool(const torch::Tensor& x, const Numerics& numerics) {
  TORCH_CHECK(x.dim() == 4 && x.scalar_type() == numerics.compute, "average_pool: x is ",
              x.scalar_type(), " ", x.sizes());
  return x.mean({2, 3}, /*keepdim=*/false, at::kFloat).to(numerics.compute);
}

}  // namespace lockstep
