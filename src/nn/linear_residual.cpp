#include <algorithm>
#include <optional>
#include <type_traits>

#include "nn/fused.h"
#include "nn/linear_epilogues.h"
#include "nn/plain.h"
#include "nn/product.h"

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// The parts of a residual block that autograd need not know.
struct ResidualBlock {
  detail::LinearTensors layer;
  BranchDropout dropout;
  double epsilon;
  at::ScalarType norm_type;  // type of the returned norm
  // Returns the norm in place of the stream, and a copy rounded to bf16 in place of the norm,
  // because the block after a post-norm reads both. norm_type is then fp32.
  bool rounds = false;
};

const float* row_scale(const BranchDropout& dropout, int64_t rows) {
  const torch::Tensor& scale = dropout.row_scale;
  TORCH_CHECK(!scale.defined() || (scale.is_contiguous() && scale.numel() == rows),
              "a row scale of ", rows, " rows needs as many numbers");
  return detail::pointer<float>(scale);
}

template <class T, class N>
void residual_norm_on_gpu(const torch::Tensor& x, const ResidualNormArgs<T, N>& args) {
  const detail::OnGpu gpu(x);
  const TypedGpuKernels<T>& table = gpu->typed<T>();
  if constexpr (std::is_same_v<T, N>) {
    table.residual_norm(args, x.size(0));
  } else if constexpr (std::is_same_v<N, float>) {
    table.residual_norm_fp32(args, x.size(0));
  }
}

// Gradients of the norm, and from d_sum, which that writes, of the branch.
template <class T, class N>
void residual_norm_backward_on_gpu(const detail::NormBackward& norm,
                                   const AddDropoutBackwardArgs<T>& drop) {
  const int64_t rows = norm.x.size(0);
  detail::layer_norm_backward_on_gpu<N>(norm, [&](const LayerNormBackwardArgs<N>& args) {
    const detail::OnGpu gpu(norm.x);
    const TypedGpuKernels<T>& table = gpu->typed<T>();
    if constexpr (std::is_same_v<T, N>) {
      table.residual_norm_backward({args, drop}, rows);
    } else if constexpr (std::is_same_v<N, float>) {
      table.residual_norm_fp32_backward({args, drop}, rows);
    }
  });
}

// Forward and backward go over the rows in blocks, so that each kernel finds in the cache what the
// previous one left there.
struct FusedLinearResidualNorm : Function<FusedLinearResidualNorm> {
  static variable_list forward(AutogradContext* ctx, const torch::Tensor& residual_input,
                               const torch::Tensor& x, const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias,
                               const torch::Tensor& norm_weight, const torch::Tensor& norm_bias,
                               const ResidualBlock& block) {
    const torch::Tensor residual = residual_input.contiguous();
    const torch::Tensor product = detail::product_transposed(x, block.layer.used);
    RECORD_FUNCTION("lockstep::residual_norm", {});
    const int64_t rows = product.size(0), width = product.size(1);
    torch::Tensor stream = torch::empty_like(residual);
    torch::Tensor normed = torch::empty_like(product, block.norm_type);
    torch::Tensor mean = torch::empty({rows}, residual.options());
    torch::Tensor rstd = torch::empty({rows}, residual.options());
    torch::Tensor rounded;
    if (block.rounds) rounded = torch::empty_like(product, at::kBFloat16);
    const auto round_row = [&, to = detail::pointer<Bf16>(rounded)](int64_t row) {
      if (to == nullptr) return;
      kernels().to_bf16(detail::pointer<float>(normed) + row * width, to + row * width, width);
    };
    detail::with_type(x.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const AddDropoutArgs<T> add{detail::pointer<float>(residual),
                                  detail::pointer<T>(product),
                                  detail::pointer<T>(block.layer.used_bias),
                                  detail::pointer<float>(stream),
                                  width,
                                  detail::dropout_rows(block.dropout, product),
                                  row_scale(block.dropout, rows)};
      const auto add_rows = kernels().typed<T>().add_dropout;
      detail::with_type(block.norm_type, [&](auto norm_zero) {
        using N = decltype(norm_zero);
        const LayerNormArgs<N> normalise{detail::pointer<float>(stream),
                                         detail::pointer<float>(norm_weight),
                                         detail::pointer<float>(norm_bias),
                                         detail::pointer<N>(normed),
                                         detail::pointer<float>(mean),
                                         detail::pointer<float>(rstd),
                                         width,
                                         static_cast<float>(block.epsilon)};
        if (!product.is_cpu()) {
          return residual_norm_on_gpu<T, N>(product,
                                            {add, normalise, detail::pointer<Bf16>(rounded)});
        }
        const auto normalise_rows = kernels().typed<N>().layer_norm;
        detail::parallel_rows(rows, width, [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            add_rows(add, row, row + 1);
            normalise_rows(normalise, row, row + 1);
            round_row(row);
          }
        });
      });
    });
    ctx->save_for_backward({x, block.layer.used, weight, bias.value_or(torch::Tensor()), stream,
                            norm_weight, norm_bias, mean, rstd});
    detail::save_dropout(ctx, block.dropout);
    if (block.dropout.row_scale.defined()) ctx->saved_data["row_scale"] = block.dropout.row_scale;
    ctx->saved_data["rounds"] = block.rounds;
    ctx->set_materialize_grads(false);
    if (block.rounds) return {normed, rounded};
    return {stream, normed};
  }

  // d_sum first receives the gradient of the post-norm's result, summed over its exact and its
  // rounded copy. Its rows are written block by block just before the norm's backward replaces them
  // by the gradient of the residual sum.
  template <class T>
  static void post_norm_backward(const variable_list& grads, const variable_list& saved,
                                 const torch::Tensor& d_sum,
                                 const AddDropoutBackwardArgs<T>& drop) {
    const torch::Tensor exact = grads[0].defined() ? grads[0].contiguous() : torch::Tensor();
    const torch::Tensor rounded = grads[1].defined() ? grads[1].contiguous() : torch::Tensor();
    const int64_t width = d_sum.size(1);
    const detail::NormBackward norm{d_sum,    saved[4], saved[5], saved[6],
                                    saved[7], saved[8], {},       d_sum};
    if (!d_sum.is_cpu()) {
      exact.defined() ? d_sum.copy_(exact) : d_sum.zero_();
      if (rounded.defined()) d_sum.add_(rounded);
      return residual_norm_backward_on_gpu<T, float>(norm, drop);
    }
    auto gather = [&, to = detail::pointer<float>(d_sum), from = detail::pointer<float>(exact),
                   low = detail::pointer<Bf16>(rounded)](int64_t begin, int64_t end) {
      const int64_t first = begin * width, count = (end - begin) * width;
      if (from == nullptr) std::fill_n(to + first, count, 0.0f);
      if (from != nullptr) std::copy_n(from + first, count, to + first);
      if (low != nullptr) kernels().add_bf16(low + first, to + first, count);
    };
    const auto kernel = kernels().typed<T>().add_dropout_backward;
    detail::layer_norm_backward<float>(
        norm, [&](int64_t begin, int64_t end) { kernel(drop, begin, end); }, gather);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor &x = saved[0], &stream = saved[4];
    const int64_t width = stream.size(1);
    BranchDropout dropout = detail::saved_dropout(ctx);
    if (ctx->saved_data.count("row_scale") != 0) {
      dropout.row_scale = ctx->saved_data["row_scale"].toTensor();
    }
    torch::Tensor d_stream = grads[0].defined() ? grads[0].contiguous() : torch::Tensor();
    torch::Tensor d_product;
    {
      RECORD_FUNCTION("lockstep::residual_norm_backward", {});
      d_product = torch::empty(stream.sizes(), x.options());
      torch::Tensor d_sum = d_stream;
      if (grads[1].defined() || ctx->saved_data["rounds"].toBool()) {
        d_sum = torch::empty_like(stream);
      }
      detail::with_type(x.scalar_type(), [&](auto zero) {
        using T = decltype(zero);
        const AddDropoutBackwardArgs<T> drop{
            detail::pointer<float>(d_sum), detail::pointer<T>(d_product), width,
            detail::dropout_rows(dropout, stream), row_scale(dropout, stream.size(0))};
        if (ctx->saved_data["rounds"].toBool()) {
          return post_norm_backward<T>(grads, saved, d_sum, drop);
        }
        if (!grads[1].defined()) {
          detail::run_rows<T>(stream, stream.size(0), width, drop,
                              &TypedKernels<T>::add_dropout_backward,
                              &TypedGpuKernels<T>::add_dropout_backward);
          return;
        }
        const detail::NormBackward norm{
            grads[1].contiguous(), stream, saved[5], saved[6], saved[7], saved[8], d_stream, d_sum};
        detail::with_type(norm.d_y.scalar_type(), [&](auto norm_zero) {
          using N = decltype(norm_zero);
          if (!stream.is_cpu()) return residual_norm_backward_on_gpu<T, N>(norm, drop);
          const auto kernel = kernels().typed<T>().add_dropout_backward;
          detail::layer_norm_backward<N>(
              norm, [&](int64_t begin, int64_t end) { kernel(drop, begin, end); });
        });
      });
      d_stream = d_sum;
    }
    const bool wants_x = ctx->needs_input_grad(1);
    return {d_stream, detail::linear_backward(d_product, saved, wants_x), {}, {}, {}, {}, {}};
  }
};

struct ResidualSum {
  const torch::Tensor& residual;
  const torch::Tensor& x;
  const Linear& layer;
  const BranchDropout& dropout;
  const LayerNorm& norm;
};

// Returns the stream, and its norm in `norm_type`; `rounds` is ResidualBlock::rounds, for the fused
// path only.
ResidualNorm residual_norm(const ResidualSum& sum, const Numerics& numerics,
                           at::ScalarType norm_type, bool rounds = false) {
  const auto& [residual, x, layer, dropout, norm] = sum;
  detail::check_linear(x, layer, numerics);
  const int64_t width = layer.weight->shape[0];
  TORCH_CHECK(residual.dim() == 2 && residual.size(0) == x.size(0) && residual.size(1) == width &&
                  residual.scalar_type() == at::kFloat && norm.weight->numel == width,
              "residual ", residual.scalar_type(), " ", residual.sizes(), ", expected fp32 [",
              x.size(0), ", ", width, "]");
  if (detail::runs_fused(numerics, FusedOperation::kLinearResidualNorm, x)) {
    const ResidualBlock block{detail::linear_tensors(layer, numerics.compute), dropout,
                              norm.epsilon, norm_type, rounds};
    std::optional<torch::Tensor> bias;
    if (layer.bias) bias = layer.bias->value;
    variable_list out = FusedLinearResidualNorm::apply(residual, x, layer.weight->value, bias,
                                                       norm.weight->value, norm.bias->value, block);
    return {out[0], out[1]};
  }
  torch::Tensor branch = linear(x, layer, numerics).to(torch::kFloat);
  branch = detail::plain_dropout(branch, dropout);
  if (dropout.row_scale.defined()) branch = branch * dropout.row_scale.unsqueeze(1);
  const torch::Tensor stream = residual + branch;
  Numerics of_norm = numerics;
  of_norm.compute = norm_type;
  return {stream, layer_norm(stream, norm, of_norm)};
}

}  // namespace

ResidualNorm linear_residual_norm(const torch::Tensor& residual, const torch::Tensor& x,
                                  const Linear& layer, const BranchDropout& dropout,
                                  const LayerNorm& norm, const Numerics& numerics) {
  return residual_norm({residual, x, layer, dropout, norm}, numerics, numerics.compute);
}

ResidualNorm linear_residual_post_norm(const torch::Tensor& residual, const torch::Tensor& x,
                                       const Linear& layer, const BranchDropout& dropout,
                                       const LayerNorm& norm, const Numerics& numerics) {
  // The norm is fp32, because it is the residual stream of the next block; one rounding makes what
  // that block reads.
  if (numerics.compute == at::kBFloat16 &&
      detail::runs_fused(numerics, FusedOperation::kLinearResidualNorm, x)) {
    return residual_norm({residual, x, layer, dropout, norm}, numerics, at::kFloat, true);
  }
  const torch::Tensor stream =
      residual_norm({residual, x, layer, dropout, norm}, numerics, at::kFloat).normed;
  return {stream, stream.to(numerics.compute)};
}

}  // namespace lockstep
