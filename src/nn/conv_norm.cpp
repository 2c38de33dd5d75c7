#include "nn/conv_norm.h"

#include "nn/plain.h"

namespace lockstep {
namespace {

torch::Tensor plain_conv_norm(const torch::Tensor& x, const Convolution& convolution,
                              const BatchNorm& norm, const ConvNormEnd& end,
                              const BatchNormMode& mode) {
  const at::ScalarType compute = mode.numerics.compute;
  torch::Tensor y = plain_batch_norm(plain_convolution(x, convolution, compute), norm, mode);
  if (end.residual.defined()) y = y + end.residual.to(at::kFloat);
  return (end.relu ? y.relu() : y).to(compute);
}

}  // namespace

torch::Tensor conv_norm(const torch::Tensor& x, const Convolution& convolution,
                        const BatchNorm& norm, const ConvNormEnd& end, const BatchNormMode& mode) {
  return plain_conv_norm(x, convolution, norm, end, mode);
}

}  // namespace lockstep
