// Computes attention in bfloat16 with the tile products of Intel's AMX, for sequences as long
// as those of images and long texts. Scores, softmax and sums are fp32 as in
// attention_isa.cpp; in addition, the weights and the gradients of the scores are rounded to
// bfloat16 before they are multiplied.
//
// Tiles are laid out as tiles_amx_isa.h says. A matrix becomes the right factor ("paired") by
// interleaving two of its rows at a time; its transpose becomes one by transposing 32-bit words.
#include <immintrin.h>

#include "kernels/attention_rows_isa.h"
#include "kernels/bf16_pairs_isa.h"
#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"
#include "kernels/tiles_amx_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kTile = 16;        // rows, and columns of fp32
constexpr int64_t kDepth = 32;       // bf16 in a row of a tile
constexpr int64_t kTileWords = 512;  // bf16 in a tile

// Stores a tile to rows of floats that lie `row` floats apart.
#define LOCKSTEP_STORE_ROWS(tile, to, row)                                                 \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"(int64_t{row} * 4) \
                   : "memory")

// c[:, 16 i .. 16 i + 15] = sum over k < depth of a_k b_ki, for the tiles i < count <= 4.
struct TileProduct {
  const uint16_t* a;
  int64_t a_step, a_row;  // bf16 from a_k to a_{k+1}, and between the rows of a tile
  const uint16_t* b;      // b_ki is the tile b + k * b_step + i * kTileWords
  int64_t b_step;
  int64_t depth;
  float* c;
  int64_t c_row;
};
inline void multiply_tiles(const TileProduct& p, int64_t count) {
  LOCKSTEP_ZERO_TILE(0);
  LOCKSTEP_ZERO_TILE(1);
  LOCKSTEP_ZERO_TILE(2);
  LOCKSTEP_ZERO_TILE(3);
  for (int64_t k = 0; k < p.depth; ++k) {
    const uint16_t* b = p.b + k * p.b_step;
    LOCKSTEP_LOAD_TILE(4, p.a + k * p.a_step, p.a_row * 2);
    LOCKSTEP_LOAD_TILE(5, b, 2 * kDepth);
    LOCKSTEP_MULTIPLY_TILES(0, 4, 5);
    if (count > 1) {
      LOCKSTEP_LOAD_TILE(6, b + kTileWords, 2 * kDepth);
      LOCKSTEP_MULTIPLY_TILES(1, 4, 6);
    }
    if (count > 2) {
      LOCKSTEP_LOAD_TILE(7, b + 2 * kTileWords, 2 * kDepth);
      LOCKSTEP_MULTIPLY_TILES(2, 4, 7);
    }
    if (count > 3) {
      LOCKSTEP_LOAD_TILE(5, b + 3 * kTileWords, 2 * kDepth);
      LOCKSTEP_MULTIPLY_TILES(3, 4, 5);
    }
  }
  LOCKSTEP_STORE_ROWS(0, p.c, p.c_row);
  if (count > 1) LOCKSTEP_STORE_ROWS(1, p.c + kTile, p.c_row);
  if (count > 2) LOCKSTEP_STORE_ROWS(2, p.c + 2 * kTile, p.c_row);
  if (count > 3) LOCKSTEP_STORE_ROWS(3, p.c + 3 * kTile, p.c_row);
}

// The same for any number of tiles side by side.
inline void multiply_row_of_tiles(TileProduct p, int64_t tiles) {
  for (int64_t i = 0; i < tiles; i += 4, p.b += 4 * kTileWords, p.c += 4 * kTile) {
    multiply_tiles(p, smaller(4, tiles - i));
  }
}

// 16 rows of `width` bf16: the tensor's own where it has 16, else a copy filled up with zeros.
struct Rows {
  const uint16_t* data;
  int64_t stride;
};
inline Rows sixteen_rows(const Bf16* from, int64_t stride, int64_t count, int64_t width,
                         uint16_t* copy) {
  if (count >= kTile) return {words(from), stride};
  for (int64_t i = 0; i < kTile; ++i) {
    for (int64_t j = 0; j < width; ++j)
      copy[i * width + j] = i < count ? from[i * stride + j].bits : 0;
  }
  return {copy, width};
}

// Pairs the transpose of rows [count, width] into tiles [width / 32][padded_count / 16].
inline void pair_transposed(const Bf16* from, int64_t stride, int64_t count, int64_t width,
                            int64_t padded_count, uint16_t* to, uint16_t* copy) {
  for (int64_t first = 0; first < padded_count; first += kTile) {
    const Rows rows = sixteen_rows(from + first * stride, stride, count - first, width, copy);
    for (int64_t j = 0; j < width; j += kDepth) {
      uint16_t* tile = to + (j / kDepth * (padded_count / kTile) + first / kTile) * kTileWords;
      transpose_square(reinterpret_cast<const float*>(rows.data + j), rows.stride / 2,
                       reinterpret_cast<float*>(tile), kTile);
    }
  }
}

// Pairs rows [count, width] into tiles [padded_count / 32][width / 16].
inline void pair_rows(const Bf16* from, int64_t stride, int64_t count, int64_t width,
                      int64_t padded_count, uint16_t* to, uint16_t* copy) {
  for (int64_t first = 0; first < padded_count; first += kTile) {
    const Rows rows = sixteen_rows(from + first * stride, stride, count - first, width, copy);
    for (int64_t j = 0; j < width; j += kTile) {
      uint16_t* tile = to + (first / kDepth * (width / kTile) + j / kTile) * kTileWords +
                       first % kDepth / 2 * kDepth;
      for (int64_t p = 0; p < kTile / 2; ++p) {
        const uint16_t* even = rows.data + 2 * p * rows.stride + j;
        _mm512_storeu_si512(tile + p * kDepth,
                            pairs(load_half(even), load_half(even + rows.stride)));
      }
    }
  }
}

// Turns paired rows, tiles [padded_count / 32][width / 16], into their plain transpose: tiles
// [width / 16] [padded_count / 32] of 16 columns by 32 rows.
inline void unpair_transposed(const uint16_t* from, int64_t width, int64_t padded_count,
                              uint16_t* to) {
  const int64_t across = width / kTile, down = padded_count / kDepth;
  for (int64_t i = 0; i < down; ++i) {
    for (int64_t j = 0; j < across; ++j) {
      transpose_square(reinterpret_cast<const float*>(from + (i * across + j) * kTileWords), kTile,
                       reinterpret_cast<float*>(to + (j * down + i) * kTileWords), kTile);
    }
  }
}

// Pairs 16 rows of fp32 scores [16, width] into the lower or `upper` half of tiles [width / 16].
inline void pair_scores(const float* from, int64_t width, bool upper, uint16_t* to) {
  for (int64_t p = 0; p < kTile / 2; ++p) {
    const float* even = from + 2 * p * width;
    uint16_t* row = to + (p + (upper ? kTile / 2 : 0)) * kDepth;
    for (int64_t j = 0; j < width; j += kTile, row += kTileWords) {
      _mm512_storeu_si512(row, pairs(rounded(even + j), rounded(even + width + j)));
    }
  }
}

inline int64_t in_depths(int64_t n) { return (n + kDepth - 1) / kDepth * kDepth; }

// The sizes and offsets of one head, in elements.
struct Head {
  int64_t width, queries, keys;
  int64_t query_rows, key_rows;  // padded to whole depths
  int64_t key_tiles, width_tiles;
  int64_t first_query, first_key;  // where the head begins, counted from the start of the tensors
  float scale;
};
template <class T>
Head head_of(const AttentionArgs<T>& a, const AttentionTask& t) {
  Head h{};
  h.width = a.head_width;
  h.queries = t.query_end - t.query_begin;
  h.keys = t.key_end - t.key_begin;
  h.query_rows = in_depths(h.queries);
  h.key_rows = in_depths(h.keys);
  h.key_tiles = h.key_rows / kTile;
  h.width_tiles = h.width / kTile;
  h.first_query = t.query_begin * a.query_stride + t.head * h.width;
  h.first_key = t.key_begin * a.key_stride + t.head * h.width;
  h.scale = 1.0f / __builtin_sqrtf(static_cast<float>(h.width));
  return h;
}

// The scratch memory, divided into matrices. Sizes are in floats, of which each holds two bf16.
struct TileScratch {
  uint16_t *key_t, *value_t;     // paired, transposed: [width / 32][keys / 16] tiles
  uint16_t *key, *value;         // paired: [keys / 32][width / 16] tiles
  uint16_t *weights, *d_scores;  // paired: [queries / 32][keys / 16] tiles
  uint16_t *query_t, *d_out_t;   // transposed: [width / 16][queries / 32] tiles
  uint16_t* paired_query;        // [queries / 32][width / 16] tiles, then transposed into the above
  uint16_t *rows, *copy;         // [16, keys], [16, width]
  float *scores, *d_score_rows;  // [16, keys]
  float* out;                    // [16, width], or [16, 64] of transposed gradients

  TileScratch(float* memory, int64_t keys, int64_t width) {
    auto take = [&](int64_t floats) {
      float* start = memory;
      memory += (floats + 15) / 16 * 16;
      return start;
    };
    auto take_words = [&](int64_t count) { return reinterpret_cast<uint16_t*>(take(count / 2)); };
    key_t = take_words(keys * width);
    value_t = take_words(keys * width);
    key = take_words(keys * width);
    value = take_words(keys * width);
    weights = take_words(keys * keys);
    d_scores = take_words(keys * keys);
    query_t = take_words(keys * width);
    d_out_t = take_words(keys * width);
    paired_query = take_words(keys * width);
    rows = take_words(kTile * keys);
    copy = take_words(kTile * width);
    scores = take(kTile * keys);
    d_score_rows = take(kTile * keys);
    out = take(kTile * (width < 64 ? 64 : width));
  }
  static int64_t floats(int64_t keys, int64_t width) {
    return keys * width * 7 / 2 + keys * keys + kTile * keys / 2 + kTile * width / 2 +
           2 * kTile * keys + kTile * (width < 64 ? 64 : width) + 14 * 16;
  }
};

// Whether the tiles fit the attention and pay: products take little of the
// time of shorter sentences.
constexpr int64_t kFewestKeys = 64, kMostKeys = 1024;
template <class T>
bool fits(const AttentionArgs<T>& a, const AttentionTask& t) {
  const int64_t queries = t.query_end - t.query_begin, keys = t.key_end - t.key_begin;
  return !a.causal && keys >= kFewestKeys && keys <= kMostKeys && queries >= kTile &&
         queries <= keys && a.head_width % kDepth == 0 && a.query_stride % 2 == 0 &&
         a.key_stride % 2 == 0;
}

// The kernels of the next lower instruction set, used where fits() is false.
void (*forward_below)(const AttentionArgs<Bf16>&, const AttentionTask&, float*) = nullptr;
void (*backward_below)(const AttentionArgs<Bf16>&, const AttentionBackwardArgs<Bf16>&,
                       const AttentionTask&, float*) = nullptr;
int64_t (*scratch_below)(int64_t, int64_t) = nullptr;

inline Row row_of(const AttentionArgs<Bf16>& a, const AttentionTask& t, const Head& h,
                  int64_t query) {
  return make_row(a, t, query, h.keys, h.key_rows);
}

void attention(const AttentionArgs<Bf16>& a, const AttentionTask& t, float* memory) {
  if (!fits(a, t)) return forward_below(a, t, memory);
  const Head h = head_of(a, t);
  const TileScratch s(memory, h.key_rows, h.width);
  const Tiles tiles;
  pair_transposed(a.key + h.first_key, a.key_stride, h.keys, h.width, h.key_rows, s.key_t, s.copy);
  pair_rows(a.value + h.first_key, a.key_stride, h.keys, h.width, h.key_rows, s.value, s.copy);
  for (int64_t first = 0; first < h.queries; first += kTile) {
    const int64_t count = smaller(kTile, h.queries - first);
    const Rows query = sixteen_rows(a.query + h.first_query + first * a.query_stride,
                                    a.query_stride, count, h.width, s.copy);
    multiply_row_of_tiles({query.data, kDepth, query.stride, s.key_t, h.key_tiles * kTileWords,
                           h.width / kDepth, s.scores, h.key_rows},
                          h.key_tiles);
    scale_scores(s.scores, count * h.key_rows, h.scale);
    for (int64_t i = 0; i < count; ++i) {
      float* row = s.scores + i * h.key_rows;
      a.log_sum[(t.query_begin + first + i) * a.heads + t.head] =
          softmax_row(row, row_of(a, t, h, first + i), a.dropout);
      round_scores(row, h.key_rows, s.rows + i * h.key_rows);
    }
    multiply_row_of_tiles({s.rows, kDepth, h.key_rows, s.value, h.width_tiles * kTileWords,
                           h.key_rows / kDepth, s.out, h.width},
                          h.width_tiles);
    store_rows(s.out, count, h.width,
               a.out + (t.query_begin + first) * a.out_stride + t.head * h.width, a.out_stride,
               1.0f);
  }
}

struct Gradient {
  Bf16* to;  // of the head's first key
  int64_t stride;
  float scale;
};

// Computes the gradient of keys or values, [keys, width] = scores^T [keys, queries] x [queries,
// width], as its transpose, because x_t and the paired scores are at hand.
inline void finish_keys(const Head& h, const uint16_t* x_t, const uint16_t* scores, float* memory,
                        const Gradient& gradient) {
  const int64_t down = h.query_rows / kDepth;
  constexpr int64_t kBeside = 4;
  for (int64_t j = 0; j < h.width_tiles; ++j) {
    for (int64_t k = 0; k < h.key_tiles; k += kBeside) {
      const int64_t count = smaller(kBeside, h.key_tiles - k);
      multiply_tiles({x_t + j * down * kTileWords, kTileWords, kDepth, scores + k * kTileWords,
                      h.key_tiles * kTileWords, down, memory, kBeside * kTile},
                     count);
      for (int64_t i = 0; i < count; ++i) {
        alignas(64) float square[kTile * kTile];
        transpose_square(memory + i * kTile, kBeside * kTile, square, kTile);
        const int64_t key = (k + i) * kTile;
        store_rows(square, smaller(kTile, h.keys - key), kTile,
                   gradient.to + key * gradient.stride + j * kTile, gradient.stride,
                   gradient.scale);
      }
    }
  }
}

void attention_backward(const AttentionArgs<Bf16>& a, const AttentionBackwardArgs<Bf16>& b,
                        const AttentionTask& t, float* memory) {
  if (!fits(a, t) || b.d_out_stride % 2 != 0) return backward_below(a, b, t, memory);
  const Head h = head_of(a, t);
  const TileScratch s(memory, h.key_rows, h.width);
  const Tiles tiles;
  const Bf16* key = a.key + h.first_key;
  const Bf16* d_out = b.d_out + t.query_begin * b.d_out_stride + t.head * h.width;
  pair_transposed(key, a.key_stride, h.keys, h.width, h.key_rows, s.key_t, s.copy);
  pair_transposed(a.value + h.first_key, a.key_stride, h.keys, h.width, h.key_rows, s.value_t,
                  s.copy);
  pair_rows(key, a.key_stride, h.keys, h.width, h.key_rows, s.key, s.copy);
  for (int64_t first = 0; first < h.query_rows; first += kTile) {
    const int64_t count = smaller(kTile, h.queries - first);  // 0 or less: zeros
    uint16_t* weights = s.weights + first / kDepth * h.key_tiles * kTileWords;
    uint16_t* d_scores = s.d_scores + first / kDepth * h.key_tiles * kTileWords;
    const TileProduct depth{nullptr,          kDepth,  0,         nullptr, h.key_tiles * kTileWords,
                            h.width / kDepth, nullptr, h.key_rows};
    if (count > 0) {
      TileProduct product = depth;
      Rows rows = sixteen_rows(a.query + h.first_query + first * a.query_stride, a.query_stride,
                               count, h.width, s.copy);
      product.a = rows.data, product.a_row = rows.stride;
      product.b = s.key_t, product.c = s.scores;
      multiply_row_of_tiles(product, h.key_tiles);
      rows = sixteen_rows(d_out + first * b.d_out_stride, b.d_out_stride, count, h.width, s.copy);
      product.a = rows.data, product.a_row = rows.stride;
      product.b = s.value_t, product.c = s.d_score_rows;
      multiply_row_of_tiles(product, h.key_tiles);
      scale_scores(s.scores, count * h.key_rows, h.scale);
    }
    for (int64_t i = 0; i < kTile; ++i) {
      float* row = s.scores + i * h.key_rows;
      float* d_row = s.d_score_rows + i * h.key_rows;
      if (i < count) {
        backward_row(row, d_row, row_of(a, t, h, first + i), a.dropout,
                     a.log_sum[(t.query_begin + first + i) * a.heads + t.head]);
      } else {
        for (int64_t j = 0; j < h.key_rows; ++j) row[j] = d_row[j] = 0;
      }
      round_scores(d_row, h.key_rows, s.rows + i * h.key_rows);
    }
    pair_scores(s.scores, h.key_rows, first % kDepth != 0, weights);
    pair_scores(s.d_score_rows, h.key_rows, first % kDepth != 0, d_scores);
    if (count <= 0) continue;
    multiply_row_of_tiles({s.rows, kDepth, h.key_rows, s.key, h.width_tiles * kTileWords,
                           h.key_rows / kDepth, s.out, h.width},
                          h.width_tiles);
    store_rows(s.out, count, h.width,
               b.d_query + (t.query_begin + first) * b.d_query_stride + t.head * h.width,
               b.d_query_stride, h.scale);
  }
  pair_rows(d_out, b.d_out_stride, h.queries, h.width, h.query_rows, s.paired_query, s.copy);
  unpair_transposed(s.paired_query, h.width, h.query_rows, s.d_out_t);
  pair_rows(a.query + h.first_query, a.query_stride, h.queries, h.width, h.query_rows,
            s.paired_query, s.copy);
  unpair_transposed(s.paired_query, h.width, h.query_rows, s.query_t);
  const int64_t to = t.key_begin * b.d_key_stride + t.head * h.width;
  finish_keys(h, s.d_out_t, s.weights, s.out, {b.d_value + to, b.d_key_stride, 1.0f});
  finish_keys(h, s.query_t, s.d_scores, s.out, {b.d_key + to, b.d_key_stride, h.scale});
}

int64_t attention_scratch(int64_t longest_key, int64_t head_width) {
  const int64_t below = scratch_below(longest_key, head_width);
  if (longest_key < kFewestKeys) return below;
  const int64_t keys = in_depths(smaller(longest_key, kMostKeys));
  const int64_t floats = TileScratch::floats(keys, head_width);
  return floats > below ? floats : below;
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
