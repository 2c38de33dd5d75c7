// Defines attention over packed sentences as what a team does to a row (row_kernels.h): a query or
// a key of one head (Vaswani et al. 2017, section 3.2.1).
#pragma once

#include <cmath>

#include "gpu/gpu_kernels.h"
#include "gpu/row_math.h"

namespace lockstep {
namespace detail {
namespace gpu_rows {

// Where a row of attention lies.
struct AttentionPlace {
  // Of a query or a key token, which `offsets` divide into sentences.
  template <class T>
  LOCKSTEP_ANYWHERE AttentionPlace(const PackedAttentionArgs<T>& p, const int32_t* offsets,
                                   int64_t row)
      : token(row / p.attention.heads), head(row % p.attention.heads) {
    int64_t low = 0, high = p.sentences;  // the last sentence that begins at or before the token
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (offsets[middle] <= token ? low : high) = middle;
    }
    position = token - offsets[low];
    first_query = p.query_offsets[low];
    queries = p.query_offsets[low + 1] - first_query;
    first_key = p.key_offsets[low];
    keys = p.key_offsets[low + 1] - first_key;
  }

  int64_t token, head, position;  // in its sentence
  int64_t first_query, queries, first_key, keys;
};

template <class T>
LOCKSTEP_ANYWHERE inline int64_t seen_keys(const PackedAttentionArgs<T>& p,
                                           const AttentionPlace& at) {
  return p.attention.causal && at.position + 1 < at.keys ? at.position + 1 : at.keys;
}

template <class T>
LOCKSTEP_ANYWHERE inline float dot(const T* a, const T* b, int64_t width) {
  float sum = 0;
  for (int64_t j = 0; j < width; ++j) sum += to_float(a[j]) * to_float(b[j]);
  return sum;
}

LOCKSTEP_ANYWHERE inline float score_scale(int64_t width) {
  return 1.0f / sqrtf(static_cast<float>(width));
}

// One head of a query, and what it sees.
template <class T>
struct QueryRow {
  LOCKSTEP_ANYWHERE QueryRow(const PackedAttentionArgs<T>& p, int64_t row)
      : at(p, p.query_offsets, row),
        width(p.attention.head_width),
        column(at.head * width),
        keys(seen_keys(p, at)),
        first(at.first_key * p.attention.key_stride + column),
        query(p.attention.query + at.token * p.attention.query_stride + column),
        weights(p.weights + row * p.longest_key) {}

  AttentionPlace at;
  int64_t width, column, keys;
  int64_t first;  // where this head of the first key, and of its value, begins
  const T* query;
  float* weights;  // [keys]
};

// out [width] = the sum of the rows from `rows` on, each times its weight.
template <class T, class Team>
LOCKSTEP_ANYWHERE inline void mix_rows(const QueryRow<T>& q, const float* weights, const T* rows,
                                       int64_t stride, T* out, const Team& team) {
  for (int64_t j = team.rank(); j < q.width; j += team.size()) {
    float mixed = 0;
    for (int64_t k = 0; k < q.keys; ++k) mixed += weights[k] * to_float(rows[k * stride + j]);
    out[j] = from_float<T>(mixed);
  }
}

struct AttentionForward {
  static constexpr bool kSmallTeam = true;
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const PackedAttentionArgs<T>& p, int64_t row,
                                    const Team& team) const {
    const AttentionArgs<T>& a = p.attention;
    const QueryRow<T> q(p, row);
    float largest = -INFINITY, sum = 0;
    for (int64_t k = team.rank(); k < q.keys; k += team.size()) {
      const T* key = a.key + q.first + k * a.key_stride;
      q.weights[k] = dot(q.query, key, q.width) * score_scale(q.width);
      largest = q.weights[k] > largest ? q.weights[k] : largest;
    }
    largest = team.max(largest);
    for (int64_t k = team.rank(); k < q.keys; k += team.size()) {
      q.weights[k] = exponential(q.weights[k] - largest);
      sum += q.weights[k];
    }
    sum = team.sum(sum);
    const RowFactors factors(a.dropout, q.at.token, a.heads, q.at.head, 1.0f / sum);
    for (int64_t k = team.rank(); k < q.keys; k += team.size()) q.weights[k] *= factors.of(k);
    team.sync();
    mix_rows(q, q.weights, a.value + q.first, a.key_stride,
             a.out + q.at.token * a.out_stride + q.column, team);
    if (team.rank() == 0) a.log_sum[row] = largest + logf(sum);
  }
};

// With p the weights before dropout, f its factors and g = f * d_out V^T:
// d_scores = p * (g - sum(p * g)), of which the queries' gradients are products with the keys.
// Leaves f * p and the scaled d_scores for those of the keys and values.
struct AttentionBackwardQueries {
  static constexpr bool kSmallTeam = true;
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const PackedAttentionArgs<T>& p, int64_t row,
                                    const Team& team) const {
    const AttentionArgs<T>& a = p.attention;
    const AttentionBackwardArgs<T>& b = p.gradients;
    const QueryRow<T> q(p, row);
    const T* d_out = b.d_out + q.at.token * b.d_out_stride + q.column;
    float* d_scores = p.d_scores + row * p.longest_key;
    const RowFactors factors(a.dropout, q.at.token, a.heads, q.at.head);
    const float scale = score_scale(q.width), log_sum = a.log_sum[row];
    float sum = 0;
    for (int64_t k = team.rank(); k < q.keys; k += team.size()) {
      const int64_t key = q.first + k * a.key_stride;
      q.weights[k] = exponential(dot(q.query, a.key + key, q.width) * scale - log_sum);
      d_scores[k] = dot(d_out, a.value + key, q.width) * factors.of(k);
      sum += q.weights[k] * d_scores[k];
    }
    sum = team.sum(sum);
    for (int64_t k = team.rank(); k < q.keys; k += team.size()) {
      d_scores[k] = q.weights[k] * (d_scores[k] - sum) * scale;
      q.weights[k] *= factors.of(k);
    }
    team.sync();
    mix_rows(q, d_scores, a.key + q.first, a.key_stride,
             b.d_query + q.at.token * b.d_query_stride + q.column, team);
  }
};

struct AttentionBackwardKeys {
  static constexpr bool kSmallTeam = true;
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const PackedAttentionArgs<T>& p, int64_t row,
                                    const Team& team) const {
    const AttentionArgs<T>& a = p.attention;
    const AttentionBackwardArgs<T>& b = p.gradients;
    const AttentionPlace at(p, p.key_offsets, row);
    const int64_t column = at.head * a.head_width, own = at.token * b.d_key_stride + column;
    for (int64_t j = team.rank(); j < a.head_width; j += team.size()) {
      float d_key = 0, d_value = 0;
      for (int64_t i = a.causal ? at.position : 0; i < at.queries; ++i) {
        const int64_t token = at.first_query + i;
        const int64_t weight = (token * a.heads + at.head) * p.longest_key + at.position;
        d_key += p.d_scores[weight] * to_float(a.query[token * a.query_stride + column + j]);
        d_value += p.weights[weight] * to_float(b.d_out[token * b.d_out_stride + column + j]);
      }
      b.d_key[own + j] = from_float<T>(d_key);
      b.d_value[own + j] = from_float<T>(d_value);
    }
  }
};

}  // namespace gpu_rows
}  // namespace detail
}  // namespace lockstep
