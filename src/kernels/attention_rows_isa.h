// Computes softmax with dropout over rows of attention scores in fp32, forward and backward.
#pragma once

#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

// A row of scores. All `limit` entries (a multiple of kPadding) may be read and written; the query
// sees the first `own`, the others become zero. Sentences are often shorter than a vector, so the
// loops go over whole vectors with a mask: remainder loops would take most of the time.
struct Row {
  int32_t own, limit;
  uint64_t random;  // row_bits() for the dropout of this row
};

// Calls body(j, halves) for each group of kPadding columns; halves[l] belongs to column j + l.
template <class Body>
inline void for_groups(const DropoutRows& dropout, const Row& row, const Body& body) {
  if (dropout.threshold == 0) {  // no half is below it
    alignas(64) static constexpr uint16_t kAny[kPadding] = {};
    for (int32_t j = 0; j < row.limit; j += kPadding) body(j, kAny);
    return;
  }
  RandomHalves random;
  for (int32_t first = 0; first < row.limit; first += kBlockColumns) {
    const auto last = static_cast<int32_t>(smaller(row.limit, first + kBlockColumns));
    random.fill(row.random, first / 2, last - first);
    for (int32_t j = first; j < last; j += kPadding) body(j, random.halves() + (j - first));
  }
}

// Adds the lanes in a tree, halving their number: a chain of kPadding dependent additions would
// cost more than the exponentials.
inline float total(float* __restrict lanes) {
#pragma GCC unroll 4
  for (int n = kPadding / 2; n > 0; n /= 2) {
    for (int l = 0; l < n; ++l) lanes[l] += lanes[l + n];
  }
  return lanes[0];
}

// Replaces the scores by the weights after softmax and dropout; returns the
// logarithm of the sum of exp.
inline float softmax_row(float* scores, const Row& row, const DropoutRows& dropout) {
  alignas(64) float largest_of[kPadding], sum_of[kPadding];
  for (int l = 0; l < kPadding; ++l) {
    largest_of[l] = -__builtin_inff();
    sum_of[l] = 0;
  }
  for (int32_t j = 0; j < row.limit; j += kPadding) {
#pragma omp simd
    for (int32_t l = 0; l < kPadding; ++l) {
      const float x = j + l < row.own ? scores[j + l] : -__builtin_inff();
      largest_of[l] = x > largest_of[l] ? x : largest_of[l];
    }
  }
#pragma GCC unroll 4
  for (int n = kPadding / 2; n > 0; n /= 2) {
    for (int l = 0; l < n; ++l) {
      largest_of[l] = largest_of[l + n] > largest_of[l] ? largest_of[l + n] : largest_of[l];
    }
  }
  const float largest = largest_of[0];
  for (int32_t j = 0; j < row.limit; j += kPadding) {
#pragma omp simd
    for (int32_t l = 0; l < kPadding; ++l) {
      const float e = exponential(scores[j + l] - largest);
      const float seen = j + l < row.own ? e : 0.0f;
      scores[j + l] = seen;
      sum_of[l] += seen;
    }
  }
  const float sum = total(sum_of), norm = dropout.scale / sum;
  const uint32_t threshold = dropout.threshold;
  for_groups(dropout, row, [=](int32_t j, const Half* half) {
#pragma omp simd
    for (int32_t l = 0; l < kPadding; ++l) {
      scores[j + l] *= half[l] >= threshold ? norm : 0.0f;
    }
  });
  return largest + __builtin_logf(sum);
}

// Replaces the scores by the weights that the forward pass used, and the gradients of these weights
// by those of the scores: with p the softmax and m the scaled mask,
// d_score = p * (m * d - sum of p * m * d).
inline void backward_row(float* __restrict scores, float* __restrict d_scores, const Row& row,
                         const DropoutRows& dropout, float log_sum) {
  const uint32_t threshold = dropout.threshold;
  const float scale = dropout.scale;
  alignas(64) float product_of[kPadding] = {};
  for_groups(dropout, row, [&](int32_t j, const Half* half) {
#pragma omp simd
    for (int32_t l = 0; l < kPadding; ++l) {
      const float e = exponential(scores[j + l] - log_sum);
      const float p = j + l < row.own ? e : 0.0f;
      const float d = half[l] >= threshold ? d_scores[j + l] * scale : 0.0f;
      const float seen_d = j + l < row.own ? d : 0.0f;
      product_of[l] += p * seen_d;
      scores[j + l] = p;
      d_scores[j + l] = seen_d;
    }
  });
  const float product = total(product_of);
  for_groups(dropout, row, [=](int32_t j, const Half* half) {
#pragma omp simd
    for (int32_t l = 0; l < kPadding; ++l) {
      const float p = scores[j + l];
      d_scores[j + l] = p * (d_scores[j + l] - product);
      scores[j + l] = half[l] >= threshold ? p * scale : 0.0f;
    }
  });
}

template <class T>
inline Row make_row(const AttentionArgs<T>& a, const AttentionTask& t, int64_t query, int64_t own,
                    int64_t seen) {
  Row row{static_cast<int32_t>(own), static_cast<int32_t>(padded(seen)), 0};
  if (a.dropout.threshold != 0) {
    row.random = row_bits(a.dropout.key, a.dropout.rows[t.query_begin + query], a.heads, t.head);
  }
  return row;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
