#include "decode/candidates.h"

#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr float kUnlikely = -std::numeric_limits<float>::infinity();

}  // namespace

Candidates no_candidates(int64_t rows, int64_t per_row) {
  Candidates out;
  out.per_row = per_row;
  const std::size_t total = static_cast<std::size_t>(rows * per_row);
  out.log_probability.assign(total, kUnlikely);
  out.id.assign(total, 0);
  return out;
}

Candidates best_candidates(const PackedLinear& table, const PackedInput& x, int64_t per_row,
                           const std::vector<int32_t>& excluded, const Threads& threads) {
  constexpr int64_t kCached = 1 << 17;  // logits of one part: 512 KiB
  const int64_t rows = x.rows, vocabulary = table.outputs();
  const int64_t part = std::max<int64_t>(1, kCached / rows / kPanelOutputs) * kPanelOutputs;
  const int64_t stride = std::min(part, vocabulary);
  Candidates out = no_candidates(rows, per_row);
  RowMemory memory;
  float* logits = memory.room<float>(rows * stride);
  std::vector<float> largest(static_cast<std::size_t>(rows), kUnlikely);
  std::vector<float> sum(static_cast<std::size_t>(rows), 0.0f);
  BestLogitsArgs args{logits,
                      stride,
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
    table.multiply_part(x, {first, args.count}, logits, stride, threads);
    threads.split_rows(rows, args.count,
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
