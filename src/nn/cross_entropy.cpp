#include "nn/cross_entropy.h"

#include <cmath>

#include "nn/fused.h"
#include "nn/plain.h"
#include "nn/product.h"

namespace lockstep {
namespace {

// The bias in the type of the logits; undefined where there is none.
torch::Tensor bias_as(const OutputLayer& output, at::ScalarType compute) {
  return output.bias.defined() ? output.bias.to(compute).contiguous() : torch::Tensor();
}

CrossEntropyResult plain_cross_entropy(const torch::Tensor& hidden, const OutputLayer& output,
                                       const torch::Tensor& targets, double smoothing,
                                       at::ScalarType compute) {
  const Parameter& table = output.table;
  torch::Tensor logits = at::linear(hidden, detail::plain_weight(table, compute));
  if (output.bias.defined()) logits = logits + bias_as(output, compute);
  logits = logits.to(torch::kFloat);
  torch::Tensor log_p = logits.log_softmax(1);  // [tokens, vocabulary]
  torch::Tensor nll = -log_p.gather(1, targets.unsqueeze(1)).sum();
  double share = smoothing / static_cast<double>(table.shape[0]);
  CrossEntropyResult result;
  result.loss = nll * (1 - smoothing) - log_p.sum() * share;
  result.nll = nll.detach();
  result.correct = (logits.detach().argmax(1) == targets).sum();
  return result;
}

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Targets on a GPU are looked at by the kernel there.
void check_targets(const torch::Tensor& targets, int64_t rows, int64_t vocabulary) {
  TORCH_CHECK(
      targets.scalar_type() == at::kLong && targets.is_contiguous() && targets.numel() == rows,
      "targets must be ", rows, " int64");
  if (!targets.is_cpu()) return;
  const int64_t* target = targets.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < rows; ++i) {
    TORCH_CHECK_INDEX(target[i] >= 0 && target[i] < vocabulary, "target ", target[i], " of ",
                      vocabulary);
  }
}

struct LossRows {           // one entry per token
  torch::Tensor loss, nll;  // fp32
  torch::Tensor correct;    // uint8
};

struct LossOptions {
  double smoothing = 0;
  bool gradient = false;
  float scale = 1;  // of the gradient
};

// Computes the losses of the rows from `first` on, given their logits, which become their gradients
// if `gradient`.
void loss_of_chunk(const torch::Tensor& logits, const int64_t* targets, const LossRows& out,
                   int64_t first, const LossOptions& options) {
  RECORD_FUNCTION("lockstep::cross_entropy", {});
  detail::with_type(logits.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const CrossEntropyArgs<T> args{detail::pointer<T>(logits),
                                   logits.size(1),
                                   targets + first,
                                   static_cast<float>(options.smoothing),
                                   options.gradient,
                                   options.scale,
                                   detail::pointer<float>(out.loss) + first,
                                   detail::pointer<float>(out.nll) + first,
                                   detail::pointer<uint8_t>(out.correct) + first};
    detail::run_rows<T>(logits, logits.size(0), logits.size(1), args,
                        &TypedKernels<T>::cross_entropy, &TypedGpuKernels<T>::cross_entropy);
  });
}

// Returns how many rows of logits are computed at once: enough for the products to be fast and
// additions to the table's gradient to be rare, but no more than 128 MiB of logits.
int64_t chunk_rows(int64_t rows, int64_t vocabulary, int64_t element_size) {
  constexpr int64_t kBytes = 128 << 20;
  const int64_t most = std::max<int64_t>(64, kBytes / (vocabulary * element_size));
  const int64_t chunks = (rows + most - 1) / most;
  return chunks == 0 ? 1 : (rows + chunks - 1) / chunks;
}

// The table and its bias (undefined: none) in the compute type.
struct UsedOutput {
  torch::Tensor table, bias;
};

struct FusedCrossEntropy : Function<FusedCrossEntropy> {
  // `value` is the table's fp32 value; `used` the table and its bias in the compute type.
  static variable_list forward(AutogradContext* ctx, const torch::Tensor& input,
                               const torch::Tensor& value, const UsedOutput& of_output,
                               const torch::Tensor& targets, const LossOptions& options) {
    const torch::Tensor& used = of_output.table;
    const torch::Tensor hidden = input.contiguous();
    const bool gradient = options.gradient;
    const int64_t rows = hidden.size(0), vocabulary = used.size(0);
    check_targets(targets, rows, vocabulary);
    const torch::TensorOptions fp32 = hidden.options().dtype(at::kFloat);
    const LossRows out{torch::empty({rows}, fp32), torch::empty({rows}, fp32),
                       torch::empty({rows}, fp32.dtype(at::kByte))};
    torch::Tensor d_hidden;
    if (gradient) d_hidden = torch::empty_like(hidden);
    const int64_t step = chunk_rows(rows, vocabulary, hidden.element_size());
    for (int64_t first = 0; first < rows; first += step) {
      const int64_t count = std::min(step, rows - first);
      const torch::Tensor chunk = hidden.narrow(0, first, count);
      const torch::Tensor logits = detail::product_with_bias(chunk, used, of_output.bias);
      loss_of_chunk(logits, targets.const_data_ptr<int64_t>(), out, first, options);
      if (!gradient) continue;
      d_hidden.narrow(0, first, count).copy_(detail::product(logits, used));
      if (value.requires_grad()) {
        detail::add_weight_gradient(detail::gradient_of(value), logits, chunk);
      }
    }
    if (gradient) ctx->saved_data["d_hidden"] = d_hidden;
    ctx->saved_data["scale"] = static_cast<double>(options.scale);
    // Summed in double: a sum over tens of thousands of tokens keeps the digits that tests compare.
    torch::Tensor loss = out.loss.sum(at::kDouble).to(at::kFloat);
    torch::Tensor nll = out.nll.sum(at::kDouble).to(at::kFloat);
    torch::Tensor correct = out.correct.sum(at::kLong);
    ctx->mark_non_differentiable({nll, correct});
    return {loss, nll, correct};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const double scale = ctx->saved_data["scale"].toDouble();
    // Nobody waits for a GPU to look at this one number.
    TORCH_CHECK(grads[0].defined() && (!grads[0].is_cpu() || grads[0].item<double>() == scale),
                "the fused cross-entropy made its gradients for a factor of ", scale,
                " (Numerics::loss_scale); scale them in the optimizer instead");
    return {ctx->saved_data["d_hidden"].toTensor(), {}, {}, {}, {}};
  }
};

}  // namespace

LabelSmoothing label_smoothing(double share, int64_t vocabulary, const SmoothingRule& rule) {
  const double entries = static_cast<double>(vocabulary);
  LabelSmoothing out;
  // When the share is spread over all entries, the target gets share / entries of it back.
  out.share = rule.over_others && vocabulary > 1 ? share * entries / (entries - 1) : share;
  if (!rule.subtract_entropy || out.share == 0) return out;
  const double other = out.share / entries, target = 1 - out.share + other;
  out.entropy = -target * std::log(target) - (entries - 1) * other * std::log(other);
  return out;
}

CrossEntropyResult smoothed_cross_entropy(const torch::Tensor& hidden, const OutputLayer& output,
                                          const torch::Tensor& targets, double smoothing,
                                          const Numerics& numerics) {
  const Parameter& table = output.table;
  TORCH_CHECK(hidden.dim() == 2 && hidden.size(1) == table.shape[1] &&
                  hidden.scalar_type() == numerics.compute,
              "cross-entropy: hidden is ", hidden.scalar_type(), " ", hidden.sizes(), ", expected ",
              numerics.compute, " [tokens, ", table.shape[1], "]");
  if (!detail::runs_fused(numerics, FusedOperation::kCrossEntropy, hidden)) {
    return plain_cross_entropy(hidden, output, targets, smoothing, numerics.compute);
  }
  const bool gradient =
      at::GradMode::is_enabled() && (hidden.requires_grad() || table.value.requires_grad());
  variable_list out = FusedCrossEntropy::apply(
      hidden, table.value,
      UsedOutput{table.as(numerics.compute), bias_as(output, numerics.compute)}, targets,
      LossOptions{smoothing, gradient, numerics.loss_scale});
  return {out[0], out[1], out[2]};
}

}  // namespace lockstep
