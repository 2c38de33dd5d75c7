#include "nn/conv_norm.h"

#include <torch/custom_class.h>

#include <optional>
#include <utility>

#include "nn/batch_norm_fused.h"
#include "nn/fused.h"
#include "nn/plain.h"

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

torch::Tensor plain_conv_norm(const torch::Tensor& x, const Convolution& convolution,
                              const BatchNorm& norm, const ConvNormEnd& end,
                              const BatchNormMode& mode) {
  const at::ScalarType compute = mode.numerics.compute;
  torch::Tensor y = plain_batch_norm(plain_convolution(x, convolution, compute), norm, mode);
  if (end.residual.defined()) y = y + end.residual.to(at::kFloat);
  return (end.relu ? y.relu() : y).to(compute);
}

// What a forward pass keeps for its backward pass besides the tensors that autograd keeps.
struct Kept : torch::CustomClassHolder {
  Convolution convolution;
  BatchNorm norm;
  BatchNormMode mode;
  detail::BatchNormState state;
  torch::Tensor used;       // weight_for_use()
  torch::Tensor convolved;  // [n * height' * width', out], the input of the batch norm
  bool relu = true, residual = false;
  std::shared_ptr<GradientSum> x_gradient, residual_gradient;
};

// Returns what autograd gets; `shared`, unless null, gathers the gradients of several readers.
torch::Tensor given(const std::shared_ptr<GradientSum>& shared, const torch::Tensor& gradient) {
  return shared == nullptr ? gradient : shared->give(gradient);
}

struct FusedConvNorm : Function<FusedConvNorm> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& input,
                               const torch::Tensor& weight, const torch::Tensor& norm_weight,
                               const torch::Tensor& norm_bias,
                               const std::optional<torch::Tensor>& residual,
                               const c10::intrusive_ptr<Kept>& kept) {
    const torch::Tensor x = detail::channels_last(input);
    detail::PixelSums sums;
    const torch::Tensor convolved =
        detail::convolve(x, kept->used, kept->convolution, kept->mode.training ? &sums : nullptr);
    kept->convolved = detail::pixel_rows(convolved);
    kept->residual = residual.has_value();
    kept->state = detail::batch_norm_state(convolved, sums, kept->norm, kept->mode);
    torch::Tensor residual_rows;
    if (residual) residual_rows = detail::pixel_rows(detail::channels_last(*residual));
    const torch::Tensor y =
        detail::batch_norm_rows(kept->convolved, kept->state, norm_bias, residual_rows, kept->relu);
    const torch::Tensor out =
        detail::image_of_rows(y, x.size(0), convolved.size(2), convolved.size(3));
    const bool needs_y = kept->residual && kept->relu;
    ctx->save_for_backward({x, weight, needs_y ? out : torch::Tensor()});
    ctx->saved_data["kept"] = c10::IValue::make_capsule(kept);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto capsule = ctx->saved_data["kept"].toCapsule();
    const auto& kept = static_cast<const Kept&>(*capsule);
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &y = saved[2];
    const torch::Tensor d_y = detail::channels_last(grads[0]);
    detail::BatchNormBackward in;
    in.d_y = detail::pixel_rows(d_y);
    in.x = kept.convolved;
    if (y.defined()) in.y = detail::pixel_rows(y);
    in.relu = kept.relu;
    in.wants_residual = kept.residual && ctx->needs_input_grad(4);
    const detail::BatchNormGradients norm =
        detail::batch_norm_backward(in, kept.state, kept.norm, kept.mode);
    const int64_t n = d_y.size(0), height = d_y.size(2), width = d_y.size(3);
    const torch::Tensor d_convolved = detail::image_of_rows(norm.d_x, n, height, width);
    if (weight.requires_grad()) {
      detail::add_convolution_gradient(detail::gradient_of(weight), d_convolved, x,
                                       kept.convolution);
    }
    torch::Tensor d_x, d_residual;
    if (in.wants_residual) {
      d_residual = detail::image_of_rows(norm.d_residual, n, height, width);
      const auto& shared = kept.residual_gradient;
      if (shared != nullptr && shared->sum().defined()) d_residual.add_(shared->sum());
      d_residual = given(shared, d_residual);
    }
    if (ctx->needs_input_grad(0)) {
      const auto& shared = kept.x_gradient;
      d_x = given(shared,
                  detail::convolve_backward(d_convolved, kept.used, x.sizes(), kept.convolution,
                                            shared ? shared->sum() : torch::Tensor()));
    }
    return {d_x, {}, {}, {}, d_residual, {}};
  }
};

}  // namespace

torch::Tensor GradientSum::give(torch::Tensor sum) {
  sum_ = std::move(sum);
  if (++given_ < readers_) return {};
  given_ = 0;
  return std::exchange(sum_, {});
}

torch::Tensor conv_norm(const torch::Tensor& x, const Convolution& convolution,
                        const BatchNorm& norm, const ConvNormEnd& end, const BatchNormMode& mode) {
  const at::ScalarType compute = mode.numerics.compute;
  if (!detail::runs_fused(mode.numerics, FusedOperation::kConvNorm, x)) {
    return plain_conv_norm(x, convolution, norm, end, mode);
  }
  TORCH_CHECK(x.dim() == 4 && x.size(1) == convolution.inputs() && x.scalar_type() == compute &&
                  convolution.size_after(x.size(2)) > 0 && convolution.size_after(x.size(3)) > 0,
              "convolution ", convolution.weight->name, ": x is ", x.scalar_type(), " ", x.sizes(),
              ", expected ", compute, " [n, ", convolution.inputs(), ", height, width]");
  auto kept = c10::make_intrusive<Kept>();
  kept->convolution = convolution;
  kept->norm = norm;
  kept->mode = mode;
  kept->used = detail::weight_for_use(convolution, x);
  kept->relu = end.relu;
  TORCH_CHECK(end.relu || end.residual_gradient == nullptr, "a shared residual without a ReLU");
  kept->x_gradient = end.x_gradient;
  kept->residual_gradient = end.residual_gradient;
  std::optional<torch::Tensor> residual;
  if (end.residual.defined()) residual = end.residual;
  return FusedConvNorm::apply(x, convolution.weight->value, norm.weight->value, norm.bias->value,
                              residual, kept);
}

}  // namespace lockstep
