#include "nn/linear_epilogues.h"

#include <algorithm>
#include <optional>

#include "nn/fused.h"
#include "nn/plain.h"
#include "nn/product.h"

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct FusedLinearRelu : Function<FusedLinearRelu> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               const detail::LinearTensors& layer, const Dropout& dropout) {
    torch::Tensor y = detail::product_transposed(x, layer.used);
    RECORD_FUNCTION("lockstep::relu_dropout", {});
    const DropoutRows rows = detail::dropout_rows(dropout, y);
    detail::with_type(y.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const ReluDropoutArgs<T> args{detail::pointer<T>(y), detail::pointer<T>(layer.used_bias),
                                    y.size(1), rows};
      detail::run_rows<T>(y, y.size(0), y.size(1), args, &TypedKernels<T>::relu_dropout,
                          &TypedGpuKernels<T>::relu_dropout);
    });
    ctx->saved_data["scale"] = static_cast<double>(rows.scale);
    ctx->save_for_backward({x, layer.used, weight, bias, y});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor d_y = grads[0].contiguous();
    torch::Tensor d_product = torch::empty_like(d_y);
    detail::with_type(d_y.scalar_type(), [&](auto zero) {
      RECORD_FUNCTION("lockstep::relu_dropout_backward", {});
      using T = decltype(zero);
      const ReluDropoutBackwardArgs<T> args{
          detail::pointer<T>(d_y), detail::pointer<T>(saved[4]), detail::pointer<T>(d_product),
          static_cast<float>(ctx->saved_data["scale"].toDouble())};
      detail::run_rows<T>(d_y, d_y.numel(), 1, args, &TypedKernels<T>::relu_dropout_backward,
                          &TypedGpuKernels<T>::relu_dropout_backward);
    });
    const bool wants_x = ctx->needs_input_grad(0);
    return {detail::linear_backward(d_product, saved, wants_x), {}, {}, {}, {}};
  }
};

enum class Smooth : int64_t { kGelu, kSilu };

// Without `keeps_slope` no backward pass is possible.
torch::Tensor smooth_rows(Smooth activation, const torch::Tensor& product,
                          const torch::Tensor& bias, const Dropout& dropout, bool keeps_slope) {
  RECORD_FUNCTION("lockstep::gelu_dropout", {});
  const torch::Tensor y = keeps_slope ? torch::empty_like(product) : product;
  const DropoutRows rows = detail::dropout_rows(dropout, y);
  detail::with_type(y.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const GeluDropoutArgs<T> args{detail::pointer<T>(product), detail::pointer<T>(bias),
                                  detail::pointer<T>(y), y.size(1), rows};
    const bool gelu = activation == Smooth::kGelu;
    detail::run_rows<T>(
        y, y.size(0), y.size(1), args,
        gelu ? &TypedKernels<T>::gelu_dropout : &TypedKernels<T>::silu_dropout,
        gelu ? &TypedGpuKernels<T>::gelu_dropout : &TypedGpuKernels<T>::silu_dropout);
  });
  return y;
}

struct FusedLinearSmooth : Function<FusedLinearSmooth> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               const detail::LinearTensors& layer, const Dropout& dropout,
                               Smooth activation) {
    const torch::Tensor slope = detail::product_transposed(x, layer.used);
    torch::Tensor y = smooth_rows(activation, slope, layer.used_bias, dropout, true);
    ctx->save_for_backward({x, layer.used, weight, bias, slope});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor d_y = grads[0].contiguous();
    torch::Tensor d_product = torch::empty_like(d_y);
    detail::with_type(d_y.scalar_type(), [&](auto zero) {
      RECORD_FUNCTION("lockstep::gelu_dropout_backward", {});
      using T = decltype(zero);
      const T* from = detail::pointer<T>(d_y);
      const T* slope = detail::pointer<T>(saved[4]);
      T* to = detail::pointer<T>(d_product);
      if (!d_y.is_cpu()) {
        return detail::on_gpu(d_y)->typed<T>().slope({from, slope, to}, d_y.numel());
      }
      const auto kernel = kernels().typed<T>().gelu_dropout_backward;
      detail::parallel_rows(
          d_y.numel(), 1, [&](int64_t begin, int64_t end) { kernel(from, slope, to, begin, end); });
    });
    const bool wants_x = ctx->needs_input_grad(0);
    return {detail::linear_backward(d_product, saved, wants_x), {}, {}, {}, {}, {}};
  }
};

}  // namespace

torch::Tensor linear_relu(const torch::Tensor& x, const Linear& layer, const Dropout& dropout,
                          const Numerics& numerics) {
  detail::check_linear(x, layer, numerics);
  TORCH_CHECK(layer.bias, "linear_relu needs a bias");
  if (detail::runs_fused(numerics, FusedOperation::kLinearRelu, x)) {
    return FusedLinearRelu::apply(x, layer.weight->value, layer.bias->value,
                                  detail::linear_tensors(layer, numerics.compute), dropout);
  }
  return detail::plain_dropout(torch::relu(linear(x, layer, numerics)), dropout);
}

namespace {

torch::Tensor linear_smooth(const torch::Tensor& x, const Linear& layer, const Dropout& dropout,
                            const Numerics& numerics, Smooth activation) {
  detail::check_linear(x, layer, numerics);
  TORCH_CHECK(layer.bias, "a smooth activation needs a bias");
  if (detail::runs_fused(numerics, FusedOperation::kLinearGelu, x)) {
    const detail::LinearTensors used = detail::linear_tensors(layer, numerics.compute);
    if (!at::GradMode::is_enabled()) {
      return smooth_rows(activation, detail::product_transposed(x, used.used), used.used_bias,
                         dropout, false);
    }
    return FusedLinearSmooth::apply(x, layer.weight->value, layer.bias->value, used, dropout,
                                    activation);
  }
  const torch::Tensor y = linear(x, layer, numerics);
  return detail::plain_dropout(activation == Smooth::kGelu ? at::gelu(y) : at::silu(y), dropout);
}

}  // namespace

torch::Tensor linear_gelu(const torch::Tensor& x, const Linear& layer, const Dropout& dropout,
                          const Numerics& numerics) {
  return linear_smooth(x, layer, dropout, numerics, Smooth::kGelu);
}

torch::Tensor linear_silu(const torch::Tensor& x, const Linear& layer, const Dropout& dropout,
                          const Numerics& numerics) {
  return linear_smooth(x, layer, dropout, numerics, Smooth::kSilu);
}

}  // namespace lockstep
