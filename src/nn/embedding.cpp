#include "nn/embedding.h"

#include <cmath>
#include <optional>

#include "nn/fused.h"
#include "nn/plain.h"

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Indices on a GPU are looked at by the kernels there.
void check_indices(const torch::Tensor& indices, int64_t least, int64_t limit, const char* what) {
  TORCH_CHECK(indices.scalar_type() == at::kLong && indices.is_contiguous(), what,
              " must be dense int64");
  if (!indices.is_cpu()) return;
  const int64_t* index = indices.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i) {
    TORCH_CHECK_INDEX(index[i] >= least && index[i] < limit, what, " ", index[i], " of ", limit);
  }
}

double scale_of(const EmbeddingInput& input, int64_t width) {
  return input.scale.value_or(std::sqrt(static_cast<double>(width)));
}

// d_table[index] += dropout'(d_out) * scale.
void add_to_rows(const torch::Tensor& d_table, const torch::Tensor& index,
                 const torch::Tensor& d_out, float scale, const Dropout& dropout) {
  constexpr int64_t kStrip = 64;  // columns: whole cache lines, and even, as the kernel requires
  const int64_t rows = d_out.size(0), width = d_out.size(1);
  EmbeddingBackwardArgs args{
      index.const_data_ptr<int64_t>(),     rows,  detail::pointer<float>(d_out),
      detail::pointer<float>(d_table),     width, scale,
      detail::dropout_rows(dropout, d_out)};
  if (!d_out.is_cpu()) {
    const auto [sorted, order] = at::sort(index, /*stable=*/std::optional<bool>(true), 0, false);
    args.tokens = sorted.const_data_ptr<int64_t>();
    detail::on_gpu(d_out)->embedding_backward(
        {args, order.const_data_ptr<int64_t>(), d_table.size(0)}, rows);
    return;
  }
  const auto kernel = kernels().embedding_backward;
  detail::parallel_rows((width + kStrip - 1) / kStrip, kStrip * rows,
                        [&](int64_t begin, int64_t end) {
                          kernel(args, begin * kStrip, std::min(end * kStrip, width));
                        });
}

struct FusedEmbedding : Function<FusedEmbedding> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& table,
                               const EmbeddingInput& input, const torch::Tensor& positions,
                               const Dropout& dropout) {
    const int64_t rows = input.tokens.numel(), width = table.size(1);
    check_indices(input.tokens, kZeroToken, table.size(0), "token");
    check_indices(input.position, 0, positions.size(0), "position");
    TORCH_CHECK(
        input.position.numel() == rows && positions.size(1) == width && positions.is_contiguous(),
        "tokens and positions do not match");
    torch::Tensor out = torch::empty({rows, width}, table.options());
    const EmbeddingArgs args{input.tokens.const_data_ptr<int64_t>(),
                             input.position.const_data_ptr<int64_t>(),
                             detail::pointer<float>(table),
                             detail::pointer<float>(positions),
                             detail::pointer<float>(out),
                             width,
                             static_cast<float>(scale_of(input, width)),
                             detail::dropout_rows(dropout, out)};
    RECORD_FUNCTION("lockstep::embed", {});
    if (out.is_cpu()) {
      const auto kernel = kernels().embedding;
      detail::parallel_rows(rows, width,
                            [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
    } else {
      detail::on_gpu(out)->embedding({args, table.size(0), positions.size(0)}, rows);
    }
    ctx->save_for_backward({table, input.tokens, input.position});
    ctx->saved_data["scale"] = static_cast<double>(args.scale);
    ctx->saved_data["positions"] = positions.size(0);
    detail::save_dropout(ctx, dropout);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    RECORD_FUNCTION("lockstep::embed_backward", {});
    const variable_list saved = ctx->get_saved_variables();
    const torch::Tensor d_out = grads[0].contiguous();
    const Dropout dropout = detail::saved_dropout(ctx);
    const auto scale = static_cast<float>(ctx->saved_data["scale"].toDouble());
    if (saved[0].requires_grad()) {
      add_to_rows(detail::gradient_of(saved[0]), saved[1], d_out, scale, dropout);
    }
    torch::Tensor d_positions;
    if (ctx->needs_input_grad(1)) {  // numbers tensor arguments only: table, positions
      d_positions =
          torch::zeros({ctx->saved_data["positions"].toInt(), d_out.size(1)}, d_out.options());
      add_to_rows(d_positions, saved[2], d_out, 1, dropout);
    }
    return {{}, {}, d_positions, {}};
  }
};

// Uses the kernel of a residual branch, with a residual of zeros.
struct FusedEmbeddingDropout : Function<FusedEmbeddingDropout> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& input,
                               const Dropout& dropout) {
    RECORD_FUNCTION("lockstep::embedding_dropout", {});
    const torch::Tensor x = input.contiguous();
    torch::Tensor out = torch::zeros_like(x);
    const AddDropoutArgs<float> args{detail::pointer<float>(out),
                                     detail::pointer<float>(x),
                                     nullptr,
                                     detail::pointer<float>(out),
                                     x.size(1),
                                     detail::dropout_rows(dropout, x),
                                     nullptr};
    detail::run_rows<float>(x, x.size(0), x.size(1), args, &TypedKernels<float>::add_dropout,
                            &TypedGpuKernels<float>::add_dropout);
    detail::save_dropout(ctx, dropout);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    RECORD_FUNCTION("lockstep::embedding_dropout_backward", {});
    const torch::Tensor d_out = grads[0].contiguous();
    torch::Tensor d_x = torch::empty_like(d_out);
    const Dropout dropout = detail::saved_dropout(ctx);
    const AddDropoutBackwardArgs<float> args{detail::pointer<float>(d_out),
                                             detail::pointer<float>(d_x), d_out.size(1),
                                             detail::dropout_rows(dropout, d_out), nullptr};
    detail::run_rows<float>(d_out, d_out.size(0), d_out.size(1), args,
                            &TypedKernels<float>::add_dropout_backward,
                            &TypedGpuKernels<float>::add_dropout_backward);
    return {d_x, {}};
  }
};

}  // namespace

torch::Tensor sinusoidal_positions(int64_t longest, int64_t width, torch::Device device,
                                   PositionLayout layout) {
  torch::NoGradGuard no_grad;
  const bool halves = layout != PositionLayout::kInterleaved;
  const int64_t waves = (width + 1) / 2;
  // Computed in double: the angles grow to the length of the longest sentence, where fp32 would
  // lose digits.
  const double step = layout == PositionLayout::kHalves ? 1.0 / static_cast<double>(waves - 1)
                                                        : 2.0 / static_cast<double>(width);
  torch::Tensor exponent = torch::arange(waves, torch::kDouble) * step;
  torch::Tensor angle = torch::arange(longest, torch::kDouble).unsqueeze(1) /
                        torch::pow(10000.0, exponent).unsqueeze(0);  // [longest, waves]
  torch::Tensor both = torch::stack({angle.sin(), angle.cos()}, halves ? 1 : 2).flatten(1);
  both = both.narrow(1, 0, width);
  return both.to(torch::kFloat).contiguous().to(device);
}

torch::Tensor embed(const EmbeddingInput& input, const Parameter& table,
                    const torch::Tensor& positions, const Dropout& dropout,
                    const Numerics& numerics) {
  if (detail::runs_fused(numerics, FusedOperation::kEmbedding, table.value)) {
    return FusedEmbedding::apply(table.value, input, positions, dropout);
  }
  const double scale = scale_of(input, table.shape[1]);
  // [tokens, 1]: 0 for tokens that stand for zeros.
  torch::Tensor scales = (input.tokens >= 0).to(torch::kFloat).mul_(scale).unsqueeze(1);
  torch::Tensor sum = at::embedding(table.value, input.tokens.clamp_min(0)) * scales +
                      positions.index_select(0, input.position);
  return detail::plain_dropout(sum, dropout);
}

torch::Tensor embedding_dropout(const torch::Tensor& x, const Dropout& dropout,
                                const Numerics& numerics) {
  if (!dropout.active()) return x;
  if (detail::runs_fused(numerics, FusedOperation::kEmbedding, x)) {
    return FusedEmbeddingDropout::apply(x, dropout);
  }
  return detail::plain_dropout(x, dropout);
}

}  // namespace lockstep
