#include "models/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/fused.h"

namespace lockstep {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

Candidates no_candidates(int64_t rows, int64_t per_row) {
  Candidates out;
  out.per_row = per_row;
  const std::size_t total = static_cast<std::size_t>(rows * per_row);
  out.log_probability.assign(total, kNever);
  out.id.assign(total, 0);
  return out;
}

}  // namespace

Candidates best_candidates(const torch::Tensor& logits, int64_t per_row,
                           const std::vector<int32_t>& excluded) {
  torch::Tensor log_probability = logits.to(torch::kFloat).log_softmax(1);
  for (int32_t id : excluded) log_probability.select(1, id).fill_(kNever);
  const int64_t kept = std::min(per_row, logits.size(1));
  auto [values, ids] = log_probability.topk(kept, 1);
  values = values.cpu().contiguous();
  ids = ids.cpu().contiguous();
  Candidates out = no_candidates(logits.size(0), per_row);
  for (int64_t row = 0; row < logits.size(0); ++row) {
    for (int64_t i = 0; i < kept; ++i) {
      const std::size_t at = static_cast<std::size_t>(row * per_row + i);
      out.log_probability[at] = values.const_data_ptr<float>()[row * kept + i];
      out.id[at] = static_cast<int32_t>(ids.const_data_ptr<int64_t>()[row * kept + i]);
    }
  }
  return out;
}

Candidates best_candidates(const PackedLinear& table, const PackedInput& x, int64_t per_row,
                           const std::vector<int32_t>& excluded) {
  constexpr int64_t kCached = 1 << 17;  // logits of one part: 512 KiB
  const int64_t rows = x.rows(), vocabulary = table.outputs();
  const int64_t part = std::max<int64_t>(1, kCached / rows / kPanelOutputs) * kPanelOutputs;
  Candidates out = no_candidates(rows, per_row);
  const torch::Tensor logits = torch::empty({rows, std::min(part, vocabulary)}, torch::kFloat);
  std::vector<float> largest(static_cast<std::size_t>(rows), kNever);
  std::vector<float> sum(static_cast<std::size_t>(rows), 0.0f);
  BestLogitsArgs args{detail::pointer<float>(logits),
                      logits.size(1),
                      0,
                      0,
                      excluded.data(),
                      std::ssize(excluded),
                      per_row,
                      largest.data(),
                      sum.data(),
                      out.log_probability.data(),
                      out.id.data()};
  const auto kernel = kernels().best_logits;
  for (int64_t first = 0; first < vocabulary; first += part) {
    args.first_id = first;
    args.count = std::min(part, vocabulary - first);
    table.store_part(x, first, args.count, logits);
    detail::parallel_rows(rows, args.count,
                          [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  }
  for (int64_t row = 0; row < rows; ++row) {
    const std::size_t r = static_cast<std::size_t>(row);
    const float log_sum = largest[r] + std::log(sum[r]);
    for (int64_t i = 0; i < per_row; ++i) {
      out.log_probability[static_cast<std::size_t>(row * per_row + i)] -= log_sum;
    }
  }
  return out;
}

}  // namespace lockstep
