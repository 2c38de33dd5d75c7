#include "dist/gradients/powersgd.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "kernels/kernel_table.h"

namespace lockstep {
namespace {

// A column that loses all but this share of its length depends on those before it, up to rounding.
constexpr double kDependent = 1e-6;

// Returns a pseudo-random number in [-1, 1).
double random_number(uint64_t seed, int64_t column, int64_t row) {
  uint64_t bits =
      combine_keys(combine_keys(seed, static_cast<uint64_t>(column)), static_cast<uint64_t>(row));
  return static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63;
}

}  // namespace

void PowerSgdConfig::describe(Fields& f) {
  f("rank", &rank, AtLeast{1}, "columns of the two factors that stand for a gradient matrix");
  f("start_step", &start_step, AtLeast{0},
    "steps that go uncompressed first; with local steps, comm.local_after says it");
  f("min_compression", &min_compression, AtLeast{1},
    "a matrix whose factors are not smaller by this goes uncompressed");
  f("error_feedback", &error_feedback, Any{},
    "what compression lost is added to the next step's gradient");
  f("warm_start", &warm_start, Any{}, "each step goes on from the last one's factor");
}

bool PowerSgdConfig::compresses(const GradientShape& shape) const {
  const auto factors = static_cast<double>((shape.rows + shape.columns) * rank);
  return factors * min_compression < static_cast<double>(shape.numel());
}

int64_t PowerSgdConfig::numbers_sent(const std::vector<GradientShape>& parameters) const {
  int64_t count = 0;
  for (const GradientShape& p : parameters) {
    count += compresses(p) ? (p.rows + p.columns) * rank : p.numel();
  }
  return count;
}

void orthogonalize(const torch::Tensor& matrix, uint64_t seed) {
  const int64_t rows = matrix.size(0), rank = matrix.size(1);
  torch::Tensor columns = matrix.to(torch::kCPU, torch::kDouble).t().contiguous();  // [rank, rows]
  auto* all = columns.mutable_data_ptr<double>();
  auto dot = [rows](const double* a, const double* b) {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += a[i] * b[i];
    return sum;
  };
  auto take_away_those_before = [&](int64_t c) {
    double* column = all + c * rows;
    for (int64_t before = 0; before < c; ++before) {
      const double* other = all + before * rows;
      const double share = dot(column, other);
      for (int64_t i = 0; i < rows; ++i) column[i] -= share * other[i];
    }
    return std::sqrt(dot(column, column));
  };
  for (int64_t c = 0; c < rank; ++c) {
    double* column = all + c * rows;
    const double before = std::sqrt(dot(column, column));
    double norm = take_away_those_before(c);
    if (norm <= kDependent * before) {
      for (int64_t i = 0; i < rows; ++i) column[i] = random_number(seed, c, i);
      norm = take_away_those_before(c);
    }
    for (int64_t i = 0; i < rows; ++i) column[i] /= norm;
  }
  matrix.copy_(columns.t());
}

void multiply_factors(const torch::Tensor& p, const torch::Tensor& q, const torch::Tensor& out) {
  const int64_t rank = p.size(1);
  if (!out.is_cpu()) {
    out.zero_();
    for (int64_t r = 0; r < rank; ++r) {
      out.addcmul_(p.select(1, r).unsqueeze(1), q.select(1, r).unsqueeze(0));
    }
    return;
  }
  const torch::Tensor rows = q.t().contiguous();  // [rank, columns]
  const int64_t columns = q.size(0);
  constexpr int64_t kGrain = 1 << 16;  // numbers of `out`
  at::parallel_for(0, p.size(0), std::max<int64_t>(1, kGrain / columns),
                   [&](int64_t i, int64_t end) {
                     WeightedRowsArgs args{
                         .rows = rows.const_data_ptr<float>(), .count = rank, .width = columns};
                     for (; i < end; ++i) {
                       args.weights = p.const_data_ptr<float>() + i * rank;
                       args.out = out.mutable_data_ptr<float>() + i * columns;
                       kernels().weighted_rows(args);
                     }
                   });
}

}  // namespace lockstep
