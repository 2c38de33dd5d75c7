#include "nn/linear.h"

#include <optional>

#include "nn/fused.h"
#include "nn/plain.h"

namespace lockstep {
namespace detail {

void add_weight_gradient(torch::Tensor gradient, const torch::Tensor& d_y, const torch::Tensor& x) {
  if (x.scalar_type() == at::kFloat) {
    gradient.addmm_(d_y.t(), x);
    return;
  }
  // The product has fp32 sums inside and is rounded once; one more pass adds it. (MKL's product
  // of bfloat16 into fp32 takes twice as long as oneDNN's on CPUs other than Intel's.)
  const torch::Tensor product = at::mm(d_y.t(), x).contiguous();
  const Bf16* from = pointer<Bf16>(product);
  float* to = pointer<float>(gradient);
  const auto kernel = kernels().add_bf16;
  parallel_rows(product.numel(), 1,
                [&](int64_t begin, int64_t end) { kernel(from + begin, to + begin, end - begin); });
}

void add_column_sums(torch::Tensor gradient, const torch::Tensor& x) {
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

// weight and bias are the fp32 values: what autograd knows, and where the gradients go.
struct FusedLinear : Function<FusedLinear> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias, const Linear& layer) {
    const torch::Tensor& used = layer.weight->as(x.scalar_type());
    ctx->save_for_backward({x, used, weight, bias.value_or(torch::Tensor())});
    if (!layer.bias) return at::mm(x, used.t());
    return at::addmm(layer.bias->as(x.scalar_type()), x, used.t());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor &x = saved[0], &used = saved[1], &weight = saved[2], &bias = saved[3];
    const torch::Tensor d_y = grads[0].contiguous();
    torch::Tensor d_x;
    if (ctx->needs_input_grad(0)) d_x = at::mm(d_y, used);
    if (weight.requires_grad()) detail::add_weight_gradient(detail::gradient_of(weight), d_y, x);
    if (bias.defined() && bias.requires_grad()) {
      detail::add_column_sums(detail::gradient_of(bias), d_y);
    }
    return {d_x, {}, {}, {}};
  }
};

}  // namespace

torch::Tensor linear(const torch::Tensor& x, const Linear& layer, const Numerics& numerics) {
  TORCH_CHECK(
      x.dim() == 2 && x.size(1) == layer.weight->shape[1] && x.scalar_type() == numerics.compute,
      "linear: x is ", x.scalar_type(), " ", x.sizes(), ", expected ", numerics.compute,
      " [tokens, ", layer.weight->shape[1], "]");
  if (!detail::runs_fused(numerics, x)) return plain_linear(x, layer, numerics.compute);
  std::optional<torch::Tensor> bias;
  if (layer.bias) bias = layer.bias->value;
  return FusedLinear::apply(x, layer.weight->value, bias, layer);
}

}  // namespace lockstep
