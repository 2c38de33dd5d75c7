// Attention of one head of one sentence (Vaswani et al. 2017, section 3.2.1), fp32 inside. Queries
// go in blocks, so that the scores of a block stay in the cache; nothing of size query x key is
// kept for the backward pass but the logarithm of each row's sum.
#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kQueryBlock = 64;

// The scratch of a task, cut into matrices. Names say what lies in the rows; dim: head width,
// keys: key positions, both padded.
struct Scratch {
  int64_t dim, keys;
  float* key_t;     // [head width, keys]
  float* value;     // [key, dim]; in the backward pass value_t, [head width, keys]
  float* query;     // [block, dim], scaled
  float* scores;    // [block, keys]
  float* out;       // [block, dim]; in the backward pass d_out
  float* d_scores;  // [block, keys]: backward pass only, like what follows
  float* key;       // [key, dim]
  float* d_key;     // [key, dim]
  float* d_value;   // [key, dim]
  float* d_query;   // [block, dim]

  Scratch(float* memory, int64_t key_count, int64_t head_width)
      : dim(padded(head_width)), keys(padded(key_count)) {
    auto take = [&](int64_t floats) {
      float* start = memory;
      memory += floats;
      return start;
    };
    key_t = take(dim * keys);
    value = take(dim * keys);
    query = take(kQueryBlock * dim);
    scores = take(kQueryBlock * keys);
    out = take(kQueryBlock * dim);
    d_scores = take(kQueryBlock * keys);
    key = take(dim * keys);
    d_key = take(dim * keys);
    d_value = take(dim * keys);
    d_query = take(kQueryBlock * dim);
  }
};

// rows [count, width] at a stride -> to [count, padded width], times scale; padding is zero.
template <class T>
void load_rows(const T* from, int64_t stride, int64_t count, int64_t width, float* to,
               float scale) {
  const int64_t dim = padded(width);
  for (int64_t i = 0; i < count; ++i, from += stride, to += dim) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) to[j] = to_float(from[j]) * scale;
    for (int64_t j = width; j < dim; ++j) to[j] = 0;
  }
}

// rows [count, width] at a stride -> to [width, padded count]; padding is zero.
template <class T>
void load_transposed(const T* from, int64_t stride, int64_t count, int64_t width, float* to) {
  const int64_t keys = padded(count);
  for (int64_t i = 0; i < keys; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      to[j * keys + i] = i < count ? to_float(from[i * stride + j]) : 0.0f;
    }
  }
}

template <class T>
void store_rows(const float* from, int64_t dim, int64_t count, int64_t width, T* to,
                int64_t stride) {
  for (int64_t i = 0; i < count; ++i, from += dim, to += stride) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) to[j] = from_float<T>(from[j]);
  }
}

// Multiplies the weights of query row `row` (of the packed sentence) by the mask and its scale.
template <class Body>
inline void for_kept(const DropoutRows& dropout, int64_t row_key, int64_t count, const Body& body) {
  RandomHalves random;
  const uint64_t row = row_bits(dropout.key, row_key);
  for (int64_t first = 0; first < count; first += kBlockColumns) {
    const int64_t n = smaller(kBlockColumns, count - first);
    random.fill(row, first / 2, n);
    body(first, n, random.halves());
  }
}

// scores -> exp(scores - largest), returns their sum and the largest.
inline float exponentials_of_row(float* scores, int64_t count, float& largest_out) {
  float largest = scores[0];
#pragma omp simd reduction(max : largest)
  for (int64_t j = 0; j < count; ++j) largest = scores[j] > largest ? scores[j] : largest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < count; ++j) {
    const float e = exponential(scores[j] - largest);
    scores[j] = e;
    sum += e;
  }
  largest_out = largest;
  return sum;
}

inline void drop_weights(const DropoutRows& dropout, int64_t row_key, int64_t count,
                         float* weights) {
  const uint32_t threshold = dropout.threshold;
  for_kept(dropout, row_key, count, [=](int64_t first, int64_t n, const Half* half) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      weights[first + j] = half[j] >= threshold ? weights[first + j] : 0.0f;
    }
  });
}

template <class T>
void attention(const AttentionArgs<T>& a, const AttentionTask& t, float* memory) {
  const int64_t width = a.head_width, column = t.head * width;
  const int64_t queries = t.query_end - t.query_begin, keys = t.key_end - t.key_begin;
  const Scratch s(memory, keys, width);
  const int64_t first_key = t.key_begin * a.key_stride + column;
  load_transposed(a.key + first_key, a.key_stride, keys, width, s.key_t);
  load_rows(a.value + first_key, a.key_stride, keys, width, s.value, 1.0f);
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(width));
  for (int64_t block = 0; block < queries; block += kQueryBlock) {
    const int64_t count = smaller(kQueryBlock, queries - block);
    const int64_t row = t.query_begin + block;
    const int64_t seen = a.causal ? smaller(keys, block + count) : keys;  // of the last query
    load_rows(a.query + row * a.query_stride + column, a.query_stride, count, width, s.query,
              scale);
    multiply({s.query, s.dim, 1, s.key_t, s.keys, s.scores, s.keys, false}, count, padded(seen),
             width);
    for (int64_t i = 0; i < count; ++i) {
      float* weights = s.scores + i * s.keys;
      const int64_t own = a.causal ? smaller(keys, block + i + 1) : keys;
      float largest;
      const float sum = exponentials_of_row(weights, own, largest);
      a.log_sum[(row + i) * a.heads + t.head] = largest + __builtin_logf(sum);
      const float norm = a.dropout.scale / sum;
      if (a.dropout.threshold != 0) {
        drop_weights(a.dropout, a.dropout.rows[row + i] * a.heads + t.head, own, weights);
      }
#pragma omp simd
      for (int64_t j = 0; j < own; ++j) weights[j] *= norm;
      for (int64_t j = own; j < seen; ++j) weights[j] = 0;
    }
    multiply({s.scores, s.keys, 1, s.value, s.dim, s.out, s.dim, false}, count, s.dim, seen);
    store_rows(s.out, s.dim, count, width, a.out + row * a.out_stride + column, a.out_stride);
  }
}

// One row: scores -> the weights that were used (dropped, scaled), d_weights -> d_scores.
inline void backward_row(const DropoutRows& dropout, int64_t row_key, float log_sum, int64_t own,
                         float* __restrict scores, float* __restrict d_scores) {
  const uint32_t threshold = dropout.threshold;
  const float scale = dropout.scale;
  float product = 0;  // sum of weight * d_weight: the mean that softmax takes off
  if (threshold == 0) {
#pragma omp simd reduction(+ : product)
    for (int64_t j = 0; j < own; ++j) {
      const float p = exponential(scores[j] - log_sum);
      scores[j] = p;
      product += p * d_scores[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < own; ++j) d_scores[j] = scores[j] * (d_scores[j] - product);
    return;
  }
  for_kept(dropout, row_key, own, [&](int64_t first, int64_t n, const Half* half) {
    float* __restrict s = scores + first;
    float* __restrict d = d_scores + first;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) {
      const float p = exponential(s[j] - log_sum);
      const float kept = half[j] >= threshold ? scale : 0.0f;
      const float used = p * kept;
      sum += used * d[j];
      d[j] = used * d[j];
      s[j] = kept != 0 ? used : -p;  // the sign tells of dropped weights, p is needed below
    }
    product += sum;
  });
  const float inverse = 1.0f / scale;
#pragma omp simd
  for (int64_t j = 0; j < own; ++j) {
    const float used = scores[j];
    const float p = used > 0 ? used * inverse : -used;
    d_scores[j] -= p * product;
    scores[j] = used > 0 ? used : 0.0f;
  }
}

template <class T>
void attention_backward(const AttentionArgs<T>& a, const AttentionBackwardArgs<T>& b,
                        const AttentionTask& t, float* memory) {
  const int64_t width = a.head_width, column = t.head * width;
  const int64_t queries = t.query_end - t.query_begin, keys = t.key_end - t.key_begin;
  const Scratch s(memory, keys, width);
  const int64_t first_key = t.key_begin * a.key_stride + column;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(width));
  load_transposed(a.key + first_key, a.key_stride, keys, width, s.key_t);
  load_transposed(a.value + first_key, a.key_stride, keys, width, s.value);
  load_rows(a.key + first_key, a.key_stride, keys, width, s.key, scale);
#pragma omp simd
  for (int64_t i = 0; i < keys * s.dim; ++i) s.d_key[i] = s.d_value[i] = 0;
  for (int64_t block = 0; block < queries; block += kQueryBlock) {
    const int64_t count = smaller(kQueryBlock, queries - block);
    const int64_t row = t.query_begin + block;
    const int64_t seen = a.causal ? smaller(keys, block + count) : keys;
    load_rows(a.query + row * a.query_stride + column, a.query_stride, count, width, s.query,
              scale);
    load_rows(b.d_out + row * b.d_out_stride + column, b.d_out_stride, count, width, s.out, 1.0f);
    multiply({s.query, s.dim, 1, s.key_t, s.keys, s.scores, s.keys, false}, count, padded(seen),
             width);
    multiply({s.out, s.dim, 1, s.value, s.keys, s.d_scores, s.keys, false}, count, padded(seen),
             width);
    for (int64_t i = 0; i < count; ++i) {
      float* weights = s.scores + i * s.keys;
      float* d_weights = s.d_scores + i * s.keys;
      const int64_t own = a.causal ? smaller(keys, block + i + 1) : keys;
      const int64_t key = a.dropout.threshold == 0 ? 0 : a.dropout.rows[row + i] * a.heads + t.head;
      backward_row(a.dropout, key, a.log_sum[(row + i) * a.heads + t.head], own, weights,
                   d_weights);
      for (int64_t j = own; j < seen; ++j) weights[j] = d_weights[j] = 0;
    }
    multiply({s.scores, 1, s.keys, s.out, s.dim, s.d_value, s.dim, true}, seen, s.dim, count);
    multiply({s.d_scores, 1, s.keys, s.query, s.dim, s.d_key, s.dim, true}, seen, s.dim, count);
    multiply({s.d_scores, s.keys, 1, s.key, s.dim, s.d_query, s.dim, false}, count, s.dim, seen);
    store_rows(s.d_query, s.dim, count, width, b.d_query + row * b.d_query_stride + column,
               b.d_query_stride);
  }
  const int64_t d_first = t.key_begin * b.d_key_stride + column;
  store_rows(s.d_key, s.dim, keys, width, b.d_key + d_first, b.d_key_stride);
  store_rows(s.d_value, s.dim, keys, width, b.d_value + d_first, b.d_key_stride);
}

}  // namespace

int64_t attention_scratch(int64_t longest_key, int64_t head_width) {
  const int64_t dim = padded(head_width), keys = padded(longest_key);
  return 5 * dim * keys + 3 * kQueryBlock * dim + 2 * kQueryBlock * keys;
}

void fill_attention(Kernels& table) {
  table.fp32.attention = attention<float>;
  table.bf16.attention = attention<Bf16>;
  table.fp32.attention_backward = attention_backward<float>;
  table.bf16.attention_backward = attention_backward<Bf16>;
  table.attention_scratch = attention_scratch;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
