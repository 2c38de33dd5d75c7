// Computes attention of one head of one sentence in fp32 (Vaswani et al. 2017, section 3.2.1).
// Queries go in blocks, so that the scores of a block stay in the cache. Nothing of size query x
// key is kept for the backward pass, only the logarithm of each row's sum.
#include "kernels/attention_rows_isa.h"
#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kQueryBlock = 64;

// The scratch memory of a task, divided into matrices that are named for what lies in their rows.
// dim is the head width and keys the number of key positions, both padded.
struct Scratch {
  int64_t dim, keys;
  float* key;       // [keys, dim]
  float* key_t;     // [dim, keys]
  float* value;     // [keys, dim]
  float* query;     // [block, dim], scaled
  float* scores;    // [block, keys]
  float* out;       // [block, dim]; in the backward pass d_out
  float* value_t;   // [dim, keys]; it and what follows: backward pass only
  float* d_scores;  // [block, keys]
  float* d_key;     // [keys, dim]
  float* d_value;   // [keys, dim]
  float* d_query;   // [block, dim]

  Scratch(float* memory, int64_t key_count, int64_t head_width)
      : dim(padded(head_width)), keys(padded(key_count)) {
    auto take = [&](int64_t floats) {
      float* start = memory;
      memory += floats;
      return start;
    };
    key = take(dim * keys);
    key_t = take(dim * keys);
    value = take(dim * keys);
    query = take(kQueryBlock * dim);
    scores = take(kQueryBlock * keys);
    out = take(kQueryBlock * dim);
    value_t = take(dim * keys);
    d_scores = take(kQueryBlock * keys);
    d_key = take(dim * keys);
    d_value = take(dim * keys);
    d_query = take(kQueryBlock * dim);
  }
};

// Loads rows [count, width] at a stride to [padded_count, padded width], times scale; the rest
// becomes zero.
template <class T>
void load_rows(const T* from, int64_t stride, int64_t count, int64_t width, float* to,
               int64_t padded_count, float scale) {
  const int64_t dim = padded(width);
  for (int64_t i = 0; i < count; ++i, from += stride, to += dim) {
    __builtin_prefetch(from + width);  // the next head, which is probably the next task
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) to[j] = to_float(from[j]) * scale;
    for (int64_t j = width; j < dim; ++j) to[j] = 0;
  }
  for (int64_t j = 0; j < (padded_count - count) * dim; ++j) to[j] = 0;
}

template <class T>
void store_rows(const float* from, int64_t count, int64_t width, T* to, int64_t stride,
                float scale) {
  const int64_t dim = padded(width);
  for (int64_t i = 0; i < count; ++i, from += dim, to += stride) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) to[j] = from_float<T>(from[j] * scale);
  }
}

template <class T>
void attention(const AttentionArgs<T>& a, const AttentionTask& t, float* memory) {
  const int64_t width = a.head_width, column = t.head * width;
  const int64_t queries = t.query_end - t.query_begin, keys = t.key_end - t.key_begin;
  const Scratch s(memory, keys, width);
  const int64_t first_key = t.key_begin * a.key_stride + column;
  load_rows(a.key + first_key, a.key_stride, keys, width, s.key, s.keys, 1.0f);
  load_rows(a.value + first_key, a.key_stride, keys, width, s.value, keys, 1.0f);
  transpose(s.key, s.keys, s.dim, s.key_t);
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(width));
  for (int64_t block = 0; block < queries; block += kQueryBlock) {
    const int64_t count = smaller(kQueryBlock, queries - block);
    const int64_t row = t.query_begin + block;
    const int64_t seen = a.causal ? smaller(keys, block + count) : keys;  // by the last query
    load_rows(a.query + row * a.query_stride + column, a.query_stride, count, width, s.query, count,
              scale);
    multiply({s.query, s.dim, 1, s.key_t, s.keys, s.scores, s.keys, false}, count, padded(seen),
             width);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t own = a.causal ? smaller(keys, block + i + 1) : keys;
      a.log_sum[(row + i) * a.heads + t.head] =
          softmax_row(s.scores + i * s.keys, make_row(a, t, block + i, own, seen), a.dropout);
    }
    multiply({s.scores, s.keys, 1, s.value, s.dim, s.out, s.dim, false}, count, s.dim, seen);
    store_rows(s.out, count, width, a.out + row * a.out_stride + column, a.out_stride, 1.0f);
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
  load_rows(a.key + first_key, a.key_stride, keys, width, s.key, s.keys, 1.0f);
  load_rows(a.value + first_key, a.key_stride, keys, width, s.value, s.keys, 1.0f);
  transpose(s.key, s.keys, s.dim, s.key_t);
  transpose(s.value, s.keys, s.dim, s.value_t);
#pragma omp simd
  for (int64_t i = 0; i < keys * s.dim; ++i) s.d_key[i] = s.d_value[i] = 0;
  for (int64_t block = 0; block < queries; block += kQueryBlock) {
    const int64_t count = smaller(kQueryBlock, queries - block);
    const int64_t row = t.query_begin + block;
    const int64_t seen = a.causal ? smaller(keys, block + count) : keys;
    load_rows(a.query + row * a.query_stride + column, a.query_stride, count, width, s.query, count,
              scale);
    load_rows(b.d_out + row * b.d_out_stride + column, b.d_out_stride, count, width, s.out, count,
              1.0f);
    multiply({s.query, s.dim, 1, s.key_t, s.keys, s.scores, s.keys, false}, count, padded(seen),
             width);
    multiply({s.out, s.dim, 1, s.value_t, s.keys, s.d_scores, s.keys, false}, count, padded(seen),
             width);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t own = a.causal ? smaller(keys, block + i + 1) : keys;
      backward_row(s.scores + i * s.keys, s.d_scores + i * s.keys,
                   make_row(a, t, block + i, own, seen), a.dropout,
                   a.log_sum[(row + i) * a.heads + t.head]);
    }
    multiply({s.scores, 1, s.keys, s.out, s.dim, s.d_value, s.dim, true}, seen, s.dim, count);
    multiply({s.d_scores, 1, s.keys, s.query, s.dim, s.d_key, s.dim, true}, seen, s.dim, count);
    multiply({s.d_scores, s.keys, 1, s.key, s.dim, s.d_query, s.dim, false}, count, s.dim, seen);
    store_rows(s.d_query, count, width, b.d_query + row * b.d_query_stride + column,
               b.d_query_stride, scale);
  }
  const int64_t d_first = t.key_begin * b.d_key_stride + column;
  store_rows(s.d_key, keys, width, b.d_key + d_first, b.d_key_stride, 1.0f);
  store_rows(s.d_value, keys, width, b.d_value + d_first, b.d_key_stride, 1.0f);
}

}  // namespace

int64_t attention_scratch(int64_t longest_key, int64_t head_width) {
  const int64_t dim = padded(head_width), keys = padded(longest_key);
  return 6 * dim * keys + 3 * kQueryBlock * dim + 2 * kQueryBlock * keys;
}

void fill_attention(Kernels& table) {
  table.fp32.attention = attention<float>;
  table.bf16.attention = attention<Bf16>;
  table.fp16.attention = attention<Fp16>;
  table.fp32.attention_backward = attention_backward<float>;
  table.bf16.attention_backward = attention_backward<Bf16>;
  table.fp16.attention_backward = attention_backward<Fp16>;
  table.attention_scratch = attention_scratch;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
