#include "nn/linear.h"

#include "nn/plain.h"

namespace lockstep {
namespace {

torch::Tensor plain_linear(const torch::Tensor& x, const Linear& layer, at::ScalarType compute) {
  torch::Tensor weight = detail::plain_weight(*layer.weight, compute);
  if (!layer.bias) return at::linear(x, weight);
  return at::linear(x, weight, detail::plain_weight(*layer.bias, compute));
}

}  // namespace

torch::Tensor linear(const torch::Tensor& x, const Linear& layer, const Numerics& numerics) {
  return plain_linear(x, layer, numerics.compute);
}

}  // namespace lockstep
