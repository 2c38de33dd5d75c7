#include "nn/convolution.h"

#include "nn/plain.h"

namespace lockstep {

torch::Tensor plain_convolution(const torch::Tensor& x, const Convolution& convolution,
                                at::ScalarType compute) {
  TORCH_CHECK(x.dim() == 4 && x.size(1) == convolution.inputs() && x.scalar_type() == compute &&
                  convolution.size_after(x.size(2)) > 0 && convolution.size_after(x.size(3)) > 0,
              "convolution ", convolution.weight->name, ": x is ", x.scalar_type(), " ", x.sizes(),
              ", expected ", compute, " [n, ", convolution.inputs(), ", height, width]");
  const torch::Tensor weight = detail::plain_weight(*convolution.weight, compute);
  const std::vector<int64_t> stride(2, convolution.stride), padding(2, convolution.padding);
  if (compute == at::kHalf && x.is_cpu()) {  // no CPU of today is fast in fp16: see nn/product.cpp
    return at::conv2d(x.to(at::kFloat), weight.to(at::kFloat), {}, stride, padding).to(compute);
  }
  return at::conv2d(x, weight, {}, stride, padding);
}

}  // namespace lockstep
