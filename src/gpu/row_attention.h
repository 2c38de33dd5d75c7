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

struct AttentionForward {
  static constexpr bool kSmallTeam = true;
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const PackedAttentionArgs<T>& p, int64_t row,
                                    const Team& team) const {
    const AttentionArgs<T>& a = p.attention;
    const AttentionPlace at(p, p.query_offsets, row);
    const int64_t width = a.head_width, column = at.head * width, keys = seen_keys(p, at);
    const T* query = a.query + at.token * a.query_stride + column;
    const int64_t first = at.first_key * a.key_stride + column;
    float* weights = p.weights + row * p.longest_key;
    float largest = -INFINITY, sum = 0;
    for (int64_t k = team.rank(); k < keys; k += team.size()) {
      weights[k] = dot(query, a.key + first + k * a.key_stride, width) * score_scale(width);
      largest = weights[k] > largest ? weights[k] : largest;
    }
    largest = team.max(largest);
    for (int64_t k = team.rank(); k < keys; k += team.size()) {
      weights[k] = exponential(weights[k] - largest);
      sum += weights[k];
    }
    sum = team.sum(sum);
    const RowFactors factors(a.dropout, at.token, a.heads, at.head, 1.0f / sum);
    for (int64_t k = team.rank(); k < keys; k += team.size()) weights[k] *= factors.of(k);
    team.sync();
    T* out = a.out + at.token * a.out_stride + column;
    for (int64_t j = team.rank(); j < width; j += team.size()) {
      float mixed = 0;
      for (int64_t k = 0; k < keys; ++k) {
        mixed += weights[k] * to_float(a.value[first + k * a.key_stride + j]);
      }
      out[j] = from_float<T>(mixed);
    }
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
    const AttentionPlace at(p, p.query_offsets, row);
    const int64_t width = a.head_width, column = at.head * width, keys = seen_keys(p, at);
    const T* query = a.query + at.token * a.query_stride + column;
    const T* d_out = b.d_out + at.token * b.d_out_stride + column;
    const int64_t first = at.first_key * a.key_stride + column;
    float* weights = p.weights + row * p.longest_key;
    float* d_scores = p.d_scores + row * p.longest_key;
    const RowFactors factors(a.dropout, at.token, a.heads, at.head);
    const float scale = score_scale(width), log_sum = a.log_sum[row];
    float sum = 0;
    for (int64_t k = team.rank(); k < keys; k += team.size()) {
      const int64_t key = first + k * a.key_stride;
      weights[k] = exponential(dot(query, a.key + key, width) * scale - log_sum);
      d_scores[k] = dot(d_out, a.value + key, width) * factors.of(k);
      sum += weights[k] * d_scores[k];
    }
    sum = team.sum(sum);
    for (int64_t k = team.rank(); k < keys; k += team.size()) {
      d_scores[k] = weights[k] * (d_scores[k] - sum) * scale;
      weights[k] *= factors.of(k);
    }
    team.sync();
    T* d_query = b.d_query + at.token * b.d_query_stride + column;
    for (int64_t j = team.rank(); j < width; j += team.size()) {
      float d = 0;
      for (int64_t k = 0; k < keys; ++k) {
        d += d_scores[k] * to_float(a.key[first + k * a.key_stride + j]);
      }
      d_query[j] = from_float<T>(d);
    }
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
