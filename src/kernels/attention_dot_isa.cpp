// Computes attention in bfloat16 with the dot products of AVX-512 (vdpbf16ps), which do twice the
// multiplications of fp32. Scores, softmax and sums are fp32 as in attention_isa.cpp; the weights
// and the gradients of the scores are rounded to bfloat16 before they are multiplied, as in
// attention_amx_isa.cpp. Other sets have no such products: for them this file is empty.
#if defined(__AVX512BF16__)
#include "kernels/attention_rows_isa.h"
#include "kernels/bf16_pairs_isa.h"
#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

typedef uint32_t __attribute__((may_alias)) Pair;  // two bf16, one behind the other

constexpr int64_t kQueryBlock = 64;

// c[m, n] (+)= sum over k of the products of both halves of a[m, k] and b[k, n].
struct PairProduct {
  const Pair* a;
  int64_t a_row, a_column;  // pairs
  const Pair* b;
  int64_t b_row;  // pairs
  float* c;
  int64_t c_row;
  bool accumulate;
};

template <bool kAdds, int kRows, int kVectors>
inline void store_sums(const Lanes (&sum)[kRows][kVectors], float* c, int64_t c_row) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += c_row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store_lanes(kAdds ? load_lanes(c + v * kLanes) + sum[i][v] : sum[i][v], c + v * kLanes);
    }
  }
}

template <int kRows, int kVectors>
inline void pair_tile(const PairProduct& p, int64_t m, int64_t n, int64_t depth) {
  Lanes sum[kRows][kVectors] = {};
  const int64_t a_row = p.a_row, a_column = p.a_column, b_row = p.b_row;
  const Pair* a = p.a + m * a_row;
  const Pair* b = p.b + n;
  for (int64_t k = 0; k < depth; ++k, a += a_column, b += b_row) {
    __m512bh row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = (__m512bh)_mm512_loadu_si512(b + v * kLanes);
      // Unrolled, because the sums would otherwise go through memory.
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const auto x = (__m512bh)_mm512_set1_epi32(static_cast<int>(a[i * a_row]));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = (Lanes)_mm512_dpbf16_ps((__m512)sum[i][v], x, row[v]);
      }
    }
  }
  float* c = p.c + m * p.c_row + n;
  p.accumulate ? store_sums<true>(sum, c, p.c_row) : store_sums<false>(sum, c, p.c_row);
}

template <int kRows>
inline void pair_rows(const PairProduct& p, int64_t m, int64_t columns, int64_t depth) {
  int64_t n = 0;
  for (; n + 4 * kLanes <= columns; n += 4 * kLanes) pair_tile<kRows, 4>(p, m, n, depth);
  for (; n + 2 * kLanes <= columns; n += 2 * kLanes) pair_tile<kRows, 2>(p, m, n, depth);
  if (n < columns) pair_tile<kRows, 1>(p, m, n, depth);
}

// REQUIRES that `columns` is a multiple of kPadding. `depth` counts pairs.
inline void multiply_pairs(const PairProduct& p, int64_t rows, int64_t columns, int64_t depth) {
  int64_t m = 0;
  for (; m + 6 <= rows; m += 6) pair_rows<6>(p, m, columns, depth);
  for (; m + 2 <= rows; m += 2) pair_rows<2>(p, m, columns, depth);
  if (m < rows) pair_rows<1>(p, m, columns, depth);
}

inline const Pair* as_pairs(const Bf16* x) { return reinterpret_cast<const Pair*>(x); }

// The matrices of a task in its scratch memory. width is that of a head, keys the number of key
// positions, padded. Beyond the last key and the last query of a block there are zeros.
struct PairScratch {
  int64_t width, keys;
  Pair *key_t, *value_t;          // [width / 2, keys]
  Pair *key, *value;              // [keys / 2, width]
  Pair *weights, *d_score_pairs;  // [block / 2, keys]
  Pair *query, *d_out;            // [block / 2, width]
  uint16_t* rows;                 // bf16 [block, keys]: weights, or gradients of scores
  float *scores, *d_scores;       // [block, keys]
  float *out, *d_key, *d_value;   // [block, width], [keys, width]
  float* copy;                    // [16, width / 2]

  PairScratch(float* memory, int64_t key_count, int64_t head_width)
      : width(head_width), keys(padded(key_count)) {
    auto take = [&](int64_t floats) {
      float* start = memory;
      memory += floats;
      return start;
    };
    auto take_pairs = [&](int64_t count) { return reinterpret_cast<Pair*>(take(count)); };
    key_t = take_pairs(width / 2 * keys);
    value_t = take_pairs(width / 2 * keys);
    key = take_pairs(width / 2 * keys);
    value = take_pairs(width / 2 * keys);
    weights = take_pairs(kQueryBlock / 2 * keys);
    d_score_pairs = take_pairs(kQueryBlock / 2 * keys);
    query = take_pairs(kQueryBlock / 2 * width);
    d_out = take_pairs(kQueryBlock / 2 * width);
    rows = reinterpret_cast<uint16_t*>(take(kQueryBlock * keys / 2));
    scores = take(kQueryBlock * keys);
    d_scores = take(kQueryBlock * keys);
    out = take(kQueryBlock * width);
    d_key = take(keys * width);
    d_value = take(keys * width);
    copy = take(kPadding * width / 2);
  }
  static int64_t floats(int64_t key_count, int64_t width) {
    const int64_t keys = padded(key_count);
    return 4 * keys * width + 7 * kQueryBlock / 2 * keys + 2 * kQueryBlock * width +
           kPadding * width / 2;
  }
};

// Transposes the pairs of rows [count, width]: to [width / 2, keys].
inline void transpose_pairs(const Bf16* from, int64_t stride, int64_t count, const PairScratch& s,
                            Pair* to) {
  for (int64_t first = 0; first < s.keys; first += kPadding, from += kPadding * stride) {
    const auto* rows = reinterpret_cast<const float*>(from);
    int64_t row = stride / 2;
    if (count - first < kPadding) {
      rows = s.copy;
      row = s.width / 2;
      __builtin_memset(s.copy, 0, static_cast<std::size_t>(kPadding * row) * 4);
      for (int64_t i = 0; i < count - first; ++i) {
        __builtin_memcpy(s.copy + i * row, from + i * stride, static_cast<std::size_t>(row) * 4);
      }
    }
    for (int64_t j = 0; j < s.width / 2; j += kPadding) {
      transpose_square(rows + j, row, reinterpret_cast<float*>(to + j * s.keys + first), s.keys);
    }
  }
}

// Interleaves rows [count, width] two by two into `pair_count` rows of pairs.
inline void interleave_rows(const Bf16* from, int64_t stride, int64_t count, int64_t width,
                            int64_t pair_count, Pair* to) {
  const __m256i zero = _mm256_setzero_si256();
  for (int64_t p = 0; p < pair_count; ++p, to += width) {
    const uint16_t* even = words(from + 2 * p * stride);
    for (int64_t j = 0; j < width; j += kPadding) {
      const __m256i first = 2 * p < count ? load_half(even + j) : zero;
      const __m256i second = 2 * p + 1 < count ? load_half(even + stride + j) : zero;
      _mm512_storeu_si512(to + j, pairs(first, second));
    }
  }
}

// The same for fp32 [count, width] with rows `keys` apart, which are rounded.
inline void interleave_scores(const float* from, int64_t count, int64_t width, int64_t keys,
                              Pair* to) {
  const __m256i zero = _mm256_setzero_si256();
  for (int64_t p = 0; 2 * p < count; ++p, from += 2 * keys, to += keys) {
    for (int64_t j = 0; j < width; j += kPadding) {
      const __m256i second = 2 * p + 1 < count ? rounded(from + keys + j) : zero;
      _mm512_storeu_si512(to + j, pairs(rounded(from + j), second));
    }
  }
}

// Whether the rows are whole pairs and whole vectors of them.
bool fits(const AttentionArgs<Bf16>& a) {
  return a.head_width % 32 == 0 && a.query_stride % 2 == 0 && a.key_stride % 2 == 0;
}

// The kernels of the next lower instruction set, used where fits() is false.
void (*forward_below)(const AttentionArgs<Bf16>&, const AttentionTask&, float*) = nullptr;
void (*backward_below)(const AttentionArgs<Bf16>&, const AttentionBackwardArgs<Bf16>&,
                       const AttentionTask&, float*) = nullptr;
int64_t (*scratch_below)(int64_t, int64_t) = nullptr;

// A block of queries of one head.
struct QueryBlock {
  int64_t first, count;  // in the sentence
  int64_t row;           // of the tensors
  int64_t seen, limit;   // keys that its last query sees; padded
};

QueryBlock block_of(const AttentionArgs<Bf16>& a, const AttentionTask& t, int64_t first) {
  const int64_t queries = t.query_end - t.query_begin, keys = t.key_end - t.key_begin;
  const int64_t count = smaller(kQueryBlock, queries - first);
  const int64_t seen = a.causal ? smaller(keys, first + count) : keys;
  return {first, count, t.query_begin + first, seen, padded(seen)};
}

// Sets scores [count, limit] to the scaled products of queries and keys.
void score(const AttentionArgs<Bf16>& a, const AttentionTask& t, const QueryBlock& block,
           const PairScratch& s) {
  const Bf16* query = a.query + block.row * a.query_stride + t.head * s.width;
  multiply_pairs({as_pairs(query), a.query_stride / 2, 1, s.key_t, s.keys, s.scores, s.keys, false},
                 block.count, block.limit, s.width / 2);
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(s.width));
  for (int64_t i = 0; i < block.count; ++i) {
    scale_scores(s.scores + i * s.keys, block.limit, scale);
  }
}

Row row_of(const AttentionArgs<Bf16>& a, const AttentionTask& t, const QueryBlock& block,
           int64_t i) {
  const int64_t keys = t.key_end - t.key_begin;
  const int64_t own = a.causal ? smaller(keys, block.first + i + 1) : keys;
  return make_row(a, t, block.first + i, own, block.seen);
}

void attention(const AttentionArgs<Bf16>& a, const AttentionTask& t, float* memory) {
  if (!fits(a)) return forward_below(a, t, memory);
  const int64_t queries = t.query_end - t.query_begin, keys = t.key_end - t.key_begin;
  const PairScratch s(memory, keys, a.head_width);
  const int64_t first_key = t.key_begin * a.key_stride + t.head * s.width;
  transpose_pairs(a.key + first_key, a.key_stride, keys, s, s.key_t);
  interleave_rows(a.value + first_key, a.key_stride, keys, s.width, s.keys / 2, s.value);
  for (int64_t first = 0; first < queries; first += kQueryBlock) {
    const QueryBlock block = block_of(a, t, first);
    score(a, t, block, s);
    for (int64_t i = 0; i < block.count; ++i) {
      float* scores = s.scores + i * s.keys;
      a.log_sum[(block.row + i) * a.heads + t.head] =
          softmax_row(scores, row_of(a, t, block, i), a.dropout);
      round_scores(scores, block.limit, s.rows + i * s.keys);
    }
    multiply_pairs({reinterpret_cast<const Pair*>(s.rows), s.keys / 2, 1, s.value, s.width, s.out,
                    s.width, false},
                   block.count, s.width, block.limit / 2);
    store_rows(s.out, block.count, s.width, a.out + block.row * a.out_stride + t.head * s.width,
               a.out_stride, 1.0f);
  }
}

// Adds to the gradients of keys and values what a block of queries gives, and stores that of the
// queries. s.scores and s.d_scores hold the weights and the gradients of the scores.
void finish_block(const AttentionArgs<Bf16>& a, const AttentionBackwardArgs<Bf16>& b,
                  const AttentionTask& t, const QueryBlock& block, const PairScratch& s) {
  const int64_t half = (block.count + 1) / 2, column = t.head * s.width;
  interleave_rows(a.query + block.row * a.query_stride + column, a.query_stride, block.count,
                  s.width, half, s.query);
  interleave_rows(b.d_out + block.row * b.d_out_stride + column, b.d_out_stride, block.count,
                  s.width, half, s.d_out);
  interleave_scores(s.scores, block.count, block.limit, s.keys, s.weights);
  interleave_scores(s.d_scores, block.count, block.limit, s.keys, s.d_score_pairs);
  for (int64_t i = 0; i < block.count; ++i) {
    round_scores(s.d_scores + i * s.keys, block.limit, s.rows + i * s.keys);
  }
  multiply_pairs({s.weights, 1, s.keys, s.d_out, s.width, s.d_value, s.width, true}, block.seen,
                 s.width, half);
  multiply_pairs({s.d_score_pairs, 1, s.keys, s.query, s.width, s.d_key, s.width, true}, block.seen,
                 s.width, half);
  multiply_pairs(
      {reinterpret_cast<const Pair*>(s.rows), s.keys / 2, 1, s.key, s.width, s.out, s.width, false},
      block.count, s.width, block.limit / 2);
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(s.width));
  store_rows(s.out, block.count, s.width, b.d_query + block.row * b.d_query_stride + column,
             b.d_query_stride, scale);
}

void attention_backward(const AttentionArgs<Bf16>& a, const AttentionBackwardArgs<Bf16>& b,
                        const AttentionTask& t, float* memory) {
  if (!fits(a) || b.d_out_stride % 2 != 0) return backward_below(a, b, t, memory);
  const int64_t queries = t.query_end - t.query_begin, keys = t.key_end - t.key_begin;
  const PairScratch s(memory, keys, a.head_width);
  const int64_t column = t.head * s.width, first_key = t.key_begin * a.key_stride + column;
  transpose_pairs(a.key + first_key, a.key_stride, keys, s, s.key_t);
  transpose_pairs(a.value + first_key, a.key_stride, keys, s, s.value_t);
  interleave_rows(a.key + first_key, a.key_stride, keys, s.width, s.keys / 2, s.key);
  const auto bytes = static_cast<std::size_t>(s.keys * s.width) * sizeof(float);
  __builtin_memset(s.d_key, 0, bytes);
  __builtin_memset(s.d_value, 0, bytes);
  for (int64_t first = 0; first < queries; first += kQueryBlock) {
    const QueryBlock block = block_of(a, t, first);
    score(a, t, block, s);
    const Bf16* d_out = b.d_out + block.row * b.d_out_stride + column;
    multiply_pairs(
        {as_pairs(d_out), b.d_out_stride / 2, 1, s.value_t, s.keys, s.d_scores, s.keys, false},
        block.count, block.limit, s.width / 2);
    for (int64_t i = 0; i < block.count; ++i) {
      backward_row(s.scores + i * s.keys, s.d_scores + i * s.keys, row_of(a, t, block, i),
                   a.dropout, a.log_sum[(block.row + i) * a.heads + t.head]);
    }
    finish_block(a, b, t, block, s);
  }
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(s.width));
  const int64_t d_first = t.key_begin * b.d_key_stride + column;
  store_rows(s.d_key, keys, s.width, b.d_key + d_first, b.d_key_stride, scale);
  store_rows(s.d_value, keys, s.width, b.d_value + d_first, b.d_key_stride, 1.0f);
}

int64_t attention_scratch(int64_t longest_key, int64_t head_width) {
  const int64_t below = scratch_below(longest_key, head_width);
  const int64_t own = PairScratch::floats(longest_key, head_width);
  return own > below ? own : below;
}

}  // namespace

// REQUIRES: the rest of the table is filled already.
void fill_attention(Kernels& table) {
  forward_below = table.bf16.attention;
  backward_below = table.bf16.attention_backward;
  scratch_below = table.attention_scratch;
  table.bf16.attention = attention;
  table.bf16.attention_backward = attention_backward;
  table.attention_scratch = attention_scratch;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
#endif  // __AVX512BF16__
