#include "nn/layer_norm.h"

#include "nn/fused.h"
#include "nn/plain.h"

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct FusedLayerNorm : Function<FusedLayerNorm> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& input,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               double epsilon, at::ScalarType compute) {
    RECORD_FUNCTION("lockstep::layer_norm", {});
    const torch::Tensor x = input.contiguous();
    const int64_t rows = x.size(0), width = x.size(1);
    torch::Tensor y = torch::empty({rows, width}, x.options().dtype(compute));
    torch::Tensor mean = torch::empty({rows}, x.options());
    torch::Tensor rstd = torch::empty({rows}, x.options());
    detail::with_type(compute, [&](auto zero) {
      using T = decltype(zero);
      const LayerNormArgs<T> args{detail::pointer<float>(x),
                                  detail::pointer<float>(weight),
                                  detail::pointer<float>(bias),
                                  detail::pointer<T>(y),
                                  detail::pointer<float>(mean),
                                  detail::pointer<float>(rstd),
                                  width,
                                  static_cast<float>(epsilon)};
      detail::run_rows<T>(x, rows, width, args, &TypedKernels<T>::layer_norm,
                          &TypedGpuKernels<T>::layer_norm);
    });
    ctx->save_for_backward({x, weight, bias, mean, rstd});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    RECORD_FUNCTION("lockstep::layer_norm_backward", {});
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor d_x = torch::empty_like(saved[0]);
    const detail::NormBackward norm{
        grads[0].contiguous(), saved[0], saved[1], saved[2], saved[3], saved[4], {}, d_x};
    detail::with_type(norm.d_y.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      if (d_x.is_cpu()) return detail::layer_norm_backward<T>(norm, detail::NoRows{});
      detail::layer_norm_backward_on_gpu<T>(norm, [&](const LayerNormBackwardArgs<T>& args) {
        detail::on_gpu(d_x)->typed<T>().layer_norm_backward(args, d_x.size(0));
      });
    });
    return {d_x, {}, {}, {}, {}};
  }
};

}  // namespace

torch::Tensor layer_norm(const torch::Tensor& x, const LayerNorm& layer, const Numerics& numerics) {
  TORCH_CHECK(x.dim() == 2 && x.size(1) == layer.weight->numel && x.scalar_type() == at::kFloat,
              "layer_norm: x is ", x.scalar_type(), " ", x.sizes(), ", expected fp32 [tokens, ",
              layer.weight->numel, "]");
  if (detail::runs_fused(numerics, FusedOperation::kLayerNorm, x)) {
    return FusedLayerNorm::apply(x, layer.weight->value, layer.bias->value, layer.epsilon,
                                 numerics.compute);
  }
  return at::layer_norm(x, {x.size(1)}, layer.weight->value, layer.bias->value, layer.epsilon)
      .to(numerics.compute);
}

}  // namespace lockstep
