#include "nn/layer_norm.h"

#include "nn/plain.h"

namespace lockstep {

torch::Tensor layer_norm(const torch::Tensor& x, const LayerNorm& layer, const Numerics& numerics) {
  return at::layer_norm(x, {x.size(1)}, layer.weight->value, layer.bias->value, layer.epsilon)
      .to(numerics.compute);
}

}  // namespace lockstep
