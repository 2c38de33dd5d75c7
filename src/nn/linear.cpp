#include "nn/linear.h"

#include <optional>

#include "nn/fused.h"
#include "nn/gpu_blocks.h"
#include "nn/own_product.h"
#include "nn/plain.h"
#include "nn/product.h"
#include "nn/weight_gradient.h"

namespace lockstep {
namespace detail {

void add_weight_gradient(torch::Tensor gradient, const torch::Tensor& d_y, const torch::Tensor& x) {
  RECORD_FUNCTION("lockstep::add_weight_gradient", {});
  if (!x.is_cpu()) {  // sums of 16-bit factors go to fp32 at once, without a rounding and a pass
    at::addmm_out(gradient, gradient, d_y.t(), x, at::kFloat);
    return;
  }
  if (takes_own_weight_gradient(x, gradient) && d_y.is_contiguous()) {
    add_own_weight_gradient(gradient, d_y, x);
    return;
  }
  if (x.scalar_type() == at::kFloat) {
    gradient.addmm_(d_y.t(), x);
    return;
  }
  if (widens(x)) {
    gradient.addmm_(wide(d_y).t(), wide(x));
    return;
  }
  if (x.is_contiguous() && d_y.is_contiguous() &&
      add_weight_gradient_packed(gradient, d_y, x, {x.size(0), 1, 1})) {
    return;
  }
  // at::mm has fp32 sums inside and rounds once; one more pass adds its result. (MKL's product of
  // bfloat16 into fp32 takes twice as long as oneDNN's on CPUs other than Intel's.)
  const torch::Tensor product = at::mm(d_y.t(), x).contiguous();
  const Bf16* from = pointer<Bf16>(product);
  float* to = pointer<float>(gradient);
  const auto kernel = kernels().add_bf16;
  parallel_rows(product.numel(), 1,
                [&](int64_t begin, int64_t end) { kernel(from + begin, to + begin, end - begin); });
}

void add_column_sums(torch::Tensor gradient, const torch::Tensor& x) {
  RECORD_FUNCTION("lockstep::add_column_sums", {});
  if (!x.is_cpu()) return add_column_sums_on_gpu(gradient, x.contiguous());
  constexpr int64_t kStrip = 64;  // columns: a whole number of cache lines
  const int64_t rows = x.size(0), width = x.size(1);
  const torch::Tensor dense = x.contiguous();
  with_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = pointer<T>(dense);
    float* to = pointer<float>(gradient);
    const auto kernel = kernels().typed<T>().add_column_sums;
    parallel_rows((width + kStrip - 1) / kStrip, rows * kStrip, [&](int64_t begin, int64_t end) {
      kernel(from, rows, width, to, begin * kStrip, std::min(end * kStrip, width));
    });
  });
}

void check_linear(const torch::Tensor& x, const Linear& layer, const Numerics& numerics) {
  TORCH_CHECK(
      x.dim() == 2 && x.size(1) == layer.weight->shape[1] && x.scalar_type() == numerics.compute,
      "linear: x is ", x.scalar_type(), " ", x.sizes(), ", expected ", numerics.compute,
      " [tokens, ", layer.weight->shape[1], "]");
}

LinearTensors linear_tensors(const Linear& layer, at::ScalarType compute) {
  LinearTensors out{layer.weight->as(compute), {}};
  if (layer.bias) out.used_bias = layer.bias->as(compute);
  return out;
}

// On the CPU the bias is a pass of its own, because at::addmm first copies it into the result and
// then adds to it; cuBLASLt adds it while it writes the product.
torch::Tensor product_with_bias(const torch::Tensor& x, const torch::Tensor& weight,
                                const torch::Tensor& bias) {
  if (!x.is_cpu() && bias.defined()) return at::addmm(bias, x, weight.t());
  torch::Tensor y = product_transposed(x, weight);
  if (!bias.defined()) return y;
  RECORD_FUNCTION("lockstep::add_bias", {});
  with_type(y.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    T* rows = pointer<T>(y);
    const T* addend = pointer<T>(bias);
    const auto kernel = kernels().typed<T>().add_bias;
    parallel_rows(y.size(0), y.size(1),
                  [&](int64_t begin, int64_t end) { kernel(rows, addend, y.size(1), begin, end); });
  });
  return y;
}

torch::Tensor linear_backward(const torch::Tensor& d_y, const std::vector<torch::Tensor>& saved,
                              bool wants_x) {
  const torch::Tensor &x = saved[0], &used = saved[1], &weight = saved[2], &bias = saved[3];
  torch::Tensor d_x;
  if (wants_x) d_x = product(d_y, used);
  if (weight.requires_grad()) add_weight_gradient(gradient_of(weight), d_y, x);
  if (bias.defined() && bias.requires_grad()) add_column_sums(gradient_of(bias), d_y);
  return d_x;
}

}  // namespace detail

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

torch::Tensor plain_linear(const torch::Tensor& x, const Linear& layer, at::ScalarType compute) {
  torch::Tensor weight = detail::plain_weight(*layer.weight, compute);
  if (!layer.bias) return at::linear(x, weight);
  return at::linear(x, weight, detail::plain_weight(*layer.bias, compute));
}

struct FusedLinear : Function<FusedLinear> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias,
                               const detail::LinearTensors& layer) {
    ctx->save_for_backward({x, layer.used, weight, bias.value_or(torch::Tensor())});
    return detail::product_with_bias(x, layer.used, layer.used_bias);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const bool wants_x = ctx->needs_input_grad(0);
    return {detail::linear_backward(grads[0].contiguous(), ctx->get_saved_variables(), wants_x),
            {},
            {},
            {}};
  }
};

}  // namespace

torch::Tensor linear(const torch::Tensor& x, const Linear& layer, const Numerics& numerics) {
  detail::check_linear(x, layer, numerics);
  if (!detail::runs_fused(numerics, FusedOperation::kLinear, x)) {
    return plain_linear(x, layer, numerics.compute);
  }
  std::optional<torch::Tensor> bias;
  if (layer.bias) bias = layer.bias->value;
  return FusedLinear::apply(x, layer.weight->value, bias,
                            detail::linear_tensors(layer, numerics.compute));
}

}  // namespace lockstep
