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
  float* key;       // [keys, dim]
  float* key_t;     // [dim, keys]
  float* value;     // [keys, dim]
  float* query;     // [block, dim], scaled
  float* scores;    // [block, keys]
  float* out;       // [block, dim]; in the backward pass d_out
  float* value_t;   // [dim, keys]: backward pass only, like what follows
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

// rows [count, width] at a stride -> to [padded_count, padded width], times scale; the rest zero.
template <class T>
void load_rows(const T* from, int64_t stride, int64_t count, int64_t width, float* to,
               int64_t padded_count, float scale) {
  const int64_t dim = padded(width);
  for (int64_t i = 0; i < count; ++i, from += stride, to += dim) {
    __builtin_prefetch(from + width);  // the next head, probably the next task
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

// A row of scores. All `limit` entries (a multiple of kPadding) may be read and written; the query
// sees the first `own`, the others become zero. Sentences are often shorter than a vector, so loops
// go over whole vectors with a mask: remainder loops would take most of the time.
struct Row {
  int32_t own, limit;
  uint64_t random;  // row_bits of its dropout
};

// Calls body(j, halves) for each group of kPadding columns; entry l of halves is of column j + l.
template <class Body>
inline void for_groups(const DropoutRows& dropout, const Row& row, const Body& body) {
  if (dropout.threshold == 0) {  // nothing is below it
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

// Halves are added: a chain of kPadding dependent additions would cost more than the exponentials.
inline float total(float* __restrict lanes) {
#pragma GCC unroll 4
  for (int n = kPadding / 2; n > 0; n /= 2) {
    for (int l = 0; l < n; ++l) lanes[l] += lanes[l + n];
  }
  return lanes[0];
}

// scores -> weights after softmax and dropout; returns the logarithm of the sum of exp.
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

// scores -> the weights as they were used, gradients of these -> gradients of the scores:
// with p the softmax and m the scaled mask, d_score = p * (m * d - sum of p * m * d).
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
    row.random = row_bits(a.dropout.key, a.dropout.rows[t.query_begin + query] * a.heads + t.head);
  }
  return row;
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
    const int64_t seen = a.causal ? smaller(keys, block + count) : keys;  // of the last query
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
