#include "tasks/candidates.h"

#include <algorithm>
#include <limits>

#include "nn/fused.h"

namespace lockstep {
namespace {

Candidates plain_candidates(const torch::Tensor& logits, int64_t per_row,
                            const std::vector<int32_t>& excluded) {
  torch::Tensor log_probability = logits.to(torch::kFloat).log_softmax(1);
  for (int32_t id : excluded) {
    log_probability.select(1, id).fill_(-std::numeric_limits<float>::infinity());
  }
  const int64_t kept = std::min(per_row, logits.size(1));
  auto [values, ids] = log_probability.topk(kept, 1);
  values = values.cpu().contiguous();
  ids = ids.cpu().contiguous();
  Candidates out;
  out.per_row = per_row;
  const std::size_t total = static_cast<std::size_t>(logits.size(0) * per_row);
  out.log_probability.assign(total, -std::numeric_limits<float>::infinity());
  out.id.assign(total, 0);
  for (int64_t row = 0; row < logits.size(0); ++row) {
    for (int64_t i = 0; i < kept; ++i) {
      const std::size_t at = static_cast<std::size_t>(row * per_row + i);
      out.log_probability[at] = values.const_data_ptr<float>()[row * kept + i];
      out.id[at] = static_cast<int32_t>(ids.const_data_ptr<int64_t>()[row * kept + i]);
    }
  }
  return out;
}

template <class T>
Candidates fused_candidates(const torch::Tensor& logits, int64_t per_row,
                            const std::vector<int32_t>& excluded) {
  const int64_t rows = logits.size(0), vocabulary = logits.size(1);
  TORCH_CHECK(logits.is_contiguous());
  Candidates out;
  out.per_row = per_row;
  out.log_probability.resize(static_cast<std::size_t>(rows * per_row));
  out.id.resize(out.log_probability.size());
  BestLogitsArgs<T> args{
      detail::pointer<T>(logits), vocabulary,    excluded.data(), std::ssize(excluded), per_row,
      out.log_probability.data(), out.id.data(), nullptr};
  detail::parallel_rows(rows, vocabulary, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<std::size_t>(vocabulary / 64 + 1));
    BestLogitsArgs<T> own = args;
    own.scratch = scratch.data();
    kernels().typed<T>().best_logits(own, begin, end);
  });
  return out;
}

}  // namespace

Candidates best_candidates(const torch::Tensor& logits, int64_t per_row,
                           const std::vector<int32_t>& excluded, const Numerics& numerics) {
  if (!detail::runs_fused(numerics, FusedOperation::kCrossEntropy, logits))
    return plain_candidates(logits, per_row, excluded);
  if (logits.scalar_type() == at::kBFloat16) {
    return fused_candidates<Bf16>(logits, per_row, excluded);
  }
  return fused_candidates<float>(logits, per_row, excluded);
}

}  // namespace lockstep
