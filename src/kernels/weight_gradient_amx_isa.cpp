// Implements the kernels of weight_gradient.h with the tile products of Intel's AMX: TDPBF16PS adds
// to c [16, 16] fp32 the product of a [16, 32] and b [32, 16], both bf16, where row q of b's tile
// holds the pairs (b[2q, j], b[2q + 1, j]).
//
// a is d_y transposed, [outputs, pixels]; b is x, [pixels, inputs], in pairs of neighbouring
// pixels. A tap shifts the pixels of x: an even shift leads to another row of the pairs, an odd one
// to a second copy, whose pairs begin at odd pixels. With stride 2 each plane of x
// (pixel_sequence_isa.h) has these two copies.
#include "kernels/weight_gradient.h"

#include <immintrin.h>

#include "kernels/isa_math.h"
#include "kernels/pixel_sequence_isa.h"
#include "kernels/small_product_isa.h"
#include "kernels/tiles_amx_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kDepth = 32;  // pixels that one tile product sums over
// Pixels for which both factors are packed at a time, and inputs that are packed at a time: so they
// stay in L2.
constexpr int64_t kChunk = 2048, kStridedChunk = 1024;
constexpr int64_t kInputBlock = 128, kStridedInputBlock = 64;
constexpr int64_t kTileWords = 256;  // 32-bit words of a tile, each a pair of bf16

typedef uint32_t Word __attribute__((may_alias));

// The address of the channels of each place of a chunk.
struct Places {
  const uint16_t** row;
  int64_t count;
};

Pixels sequence(const WeightGradientArgs& a) {
  return Pixels({a.images, a.height, a.width, a.taps, a.stride});
}

// Writes the addresses of the channels; places that are no pixels get `zeros`.
struct RowFinder {
  const uint16_t* base;
  int64_t channels;
  const uint16_t* zeros;
  const uint16_t** row;
  void operator()(int64_t i, int64_t pixel) const {
    row[i] = pixel < 0 ? zeros : base + pixel * channels;
  }
};

// Returns the 16 pairs (a[j], b[j]).
inline __m512i pairs(const uint16_t* a, const uint16_t* b) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)a));
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)b));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// Prefetches rows: they are scattered in memory, and the processor does not foresee them by itself.
constexpr int64_t kAhead = 48;  // places
inline void fetch(const Places& places, int64_t at, int64_t channel, int64_t channels) {
  const int64_t place = at + kAhead;
  if (place >= places.count) return;
  const uint16_t* row = places.row[place] + channel;
  for (int64_t i = 0; i < channels; i += 32) __builtin_prefetch(row + i);
}

// Packs [inputs / 16, places / 2, 16] pairs; the places first, first + 2, ... are each paired with
// the next one.
struct PairBlock {
  int64_t input, inputs, rows;
};
void pack_inputs(const Places& places, int64_t first, const PairBlock& block, Word* to) {
  const int64_t input = block.input, inputs = block.inputs, rows = block.rows;
  for (int64_t q = 0; q < rows; ++q) {
    const uint16_t* a = places.row[first + 2 * q] + input;
    const uint16_t* b = places.row[first + 2 * q + 1] + input;
    if (first == 0) {
      fetch(places, 2 * q, input, inputs);
      fetch(places, 2 * q + 1, input, inputs);
    }
    for (int64_t i = 0; i < inputs; i += 16) {
      _mm512_store_si512(to + (i * rows) + q * 16, pairs(a + i, b + i));
    }
  }
}

// Packs [outputs / 16, places / 32] tiles of [16 outputs, 16 pairs of places].
void pack_outputs(const Places& places, int64_t output, int64_t outputs, Word* to) {
  const int64_t steps = places.count / kDepth;
  alignas(64) Word tile[kTileWords];
  for (int64_t s = 0; s < steps; ++s) {
    const uint16_t** row = places.row + s * kDepth;
    for (int64_t i = 0; i < kDepth; ++i) fetch(places, s * kDepth + i, output, outputs);
    for (int64_t o = 0; o < outputs; o += 16) {
      for (int64_t q = 0; q < 16; ++q) {
        _mm512_store_si512(tile + q * 16,
                           pairs(row[2 * q] + output + o, row[2 * q + 1] + output + o));
      }
      transpose_square(reinterpret_cast<const float*>(tile), 16,
                       reinterpret_cast<float*>(to + (o / 16 * steps + s) * kTileWords), 16);
    }
  }
}

// c [2, 2] tiles = sum over steps of a [2, steps] and b [steps, 2].
struct Block {
  const Word *a0, *a1;  // consecutive tiles
  const Word *b0, *b1;  // pairs in rows of 16
  int64_t steps;
};
inline void multiply(const Block& block, float* c) {
  LOCKSTEP_ZERO_TILE(0);
  LOCKSTEP_ZERO_TILE(1);
  LOCKSTEP_ZERO_TILE(2);
  LOCKSTEP_ZERO_TILE(3);
  for (int64_t s = 0; s < block.steps; ++s) {
    const int64_t at = s * kTileWords;
    LOCKSTEP_LOAD_TILE(4, block.a0 + at, 64);
    LOCKSTEP_LOAD_TILE(6, block.b0 + at, 64);
    LOCKSTEP_MULTIPLY_TILES(0, 4, 6);
    LOCKSTEP_LOAD_TILE(7, block.b1 + at, 64);
    LOCKSTEP_MULTIPLY_TILES(1, 4, 7);
    LOCKSTEP_LOAD_TILE(5, block.a1 + at, 64);
    LOCKSTEP_MULTIPLY_TILES(2, 5, 6);
    LOCKSTEP_MULTIPLY_TILES(3, 5, 7);
  }
  LOCKSTEP_STORE_TILE(0, c);
  LOCKSTEP_STORE_TILE(1, c + 256);
  LOCKSTEP_STORE_TILE(2, c + 512);
  LOCKSTEP_STORE_TILE(3, c + 768);
}

// sum [32 rows] (+)= c [2, 2] tiles.
inline void add_block(const float* c, float* sum, int64_t row, bool adds) {
  for (int64_t o = 0; o < 32; ++o) {
    const float* from = c + (o / 16 * 32 + o % 16) * 16;
    float* to = sum + o * row;
    for (int64_t i = 0; i < 2; ++i) {
      const __m512 part = _mm512_load_ps(from + i * 256);
      _mm512_storeu_ps(to + i * 16,
                       adds ? _mm512_add_ps(_mm512_loadu_ps(to + i * 16), part) : part);
    }
  }
}

// gradient [outputs, all inputs, 9] += sums [9, outputs, inputs].
struct TapSums {
  const float* sums;
  int64_t outputs, inputs;
};
void add_taps(const TapSums& from, float* gradient, int64_t all_inputs) {
  const int64_t step = from.outputs * from.inputs;
  for (int64_t o = 0; o < from.outputs; ++o) {
    const float* sum = from.sums + o * from.inputs;
    float* to = gradient + o * all_inputs * 9;
    for (int64_t i = 0; i < from.inputs; ++i, to += 9, ++sum) {
#pragma GCC unroll 9
      for (int64_t tap = 0; tap < 9; ++tap) to[tap] += sum[tap * step];
    }
  }
}

int64_t chunk_of(const Pixels& pixels) {
  const int64_t all = (pixels.count() + kDepth - 1) / kDepth * kDepth;
  return smaller(all, pixels.planes() == 1 ? kChunk : kStridedChunk);
}
int64_t input_block(const Pixels& pixels) {
  return pixels.planes() == 1 ? kInputBlock : kStridedInputBlock;
}

// The reach is even, so that a chunk's own pairs begin at an even place of the sequence around it.
int64_t reach_of(const Pixels& pixels) { return (pixels.largest_shift() + 1) / 2 * 2; }

// The scratch memory, divided into its parts.
struct Scratch {
  const uint16_t** rows;  // of the places of a chunk, or of a plane's and those around them
  uint16_t* zeros;        // as many as the larger number of channels
  Word* outputs;          // d_y, packed
  Word* inputs;           // x, packed: of each plane the even pairs, then the odd ones
  float* sums;            // [taps, outputs, inputs]; with one tap the gradient itself
  int64_t bytes;

  Scratch(const WeightGradientArgs& a, const WeightGradientPart& part, void* memory) {
    const Pixels pixels = sequence(a);
    const int64_t chunk = chunk_of(pixels), around = chunk + 2 * reach_of(pixels);
    const int64_t channels = a.inputs < a.outputs ? a.outputs : a.inputs;
    const int64_t outs = part.output_end - part.output_begin;
    const int64_t ins = part.input_end - part.input_begin;
    int64_t at = 0;
    auto take = [&](int64_t size) {
      char* here = static_cast<char*>(memory) + at;
      at += (size + 63) / 64 * 64;
      return here;
    };
    rows = reinterpret_cast<const uint16_t**>(take(pixels.planes() * (around + 1) * 8));
    zeros = reinterpret_cast<uint16_t*>(take(channels * 2));
    outputs = reinterpret_cast<Word*>(take(outs * chunk * 2));
    const int64_t copies = a.taps == 1 ? 1 : 2 * pixels.planes();
    const int64_t block = smaller(input_block(pixels), ins);
    inputs = reinterpret_cast<Word*>(take(block * around * 2 * copies));
    sums = nullptr;
    if (a.taps != 1) sums = reinterpret_cast<float*>(take(a.taps * outs * ins * 4));
    bytes = at;
  }
};

int64_t scratch_bytes(const WeightGradientArgs& a, const WeightGradientPart& part) {
  return Scratch(a, part, nullptr).bytes;
}

// The part of the gradient that one chunk adds, for one block of inputs whose pairs are packed.
struct PackedChunk {
  const Word* outputs;  // packed, all outputs of the part
  const Word* pairs;    // [planes, even and odd, inputs / 16, rows, 16]
  int64_t steps, rows, reach;
  int64_t count, inputs;              // outputs and inputs of the block
  float* sums;                        // where the sums of the block's first output and input are
  int64_t tap_stride, output_stride;  // of sums
  bool adds;
};

void add_chunk(const PackedChunk& chunk, const Pixels& pixels, int64_t taps) {
  alignas(64) float c[1024];
  for (int64_t o = 0; o < chunk.count; o += 32) {
    const Word* a = chunk.outputs + o / 16 * chunk.steps * kTileWords;
    for (int64_t i = 0; i < chunk.inputs; i += 32) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t shift = chunk.reach + pixels.shift(tap);
        const int64_t copy = 2 * pixels.plane(tap) + shift % 2;
        const Word* b = chunk.pairs + (copy * chunk.inputs + i) * chunk.rows + shift / 2 * 16;
        multiply({a, a + chunk.steps * kTileWords, b, b + chunk.rows * 16, chunk.steps}, c);
        add_block(c, chunk.sums + tap * chunk.tap_stride + o * chunk.output_stride + i,
                  chunk.output_stride, chunk.adds);
      }
    }
  }
}

void add(const WeightGradientArgs& a, const WeightGradientPart& part, void* memory) {
  const Tiles tiles;
  const Pixels pixels = sequence(a);
  const Scratch scratch(a, part, memory);
  const int64_t outputs = part.output_end - part.output_begin;
  const int64_t inputs = part.input_end - part.input_begin;
  const int64_t channels = a.inputs < a.outputs ? a.outputs : a.inputs;
  for (int64_t i = 0; i < channels; ++i) scratch.zeros[i] = 0;
  float* gradient = a.gradient + (part.output_begin * a.inputs + part.input_begin) * a.taps;
  PackedChunk chunk{};
  chunk.outputs = scratch.outputs;
  chunk.pairs = scratch.inputs;
  chunk.reach = reach_of(pixels);
  chunk.count = outputs;
  chunk.tap_stride = outputs * inputs;
  chunk.output_stride = a.taps == 1 ? a.inputs : inputs;
  const int64_t size = chunk_of(pixels);
  for (int64_t first = 0; first < pixels.count(); first += size) {
    const int64_t left = (pixels.count() - first + kDepth - 1) / kDepth * kDepth;
    const int64_t count = smaller(size, left);
    pixels.walk(
        first, first + count,
        RowFinder{static_cast<const uint16_t*>(a.d_y), a.outputs, scratch.zeros, scratch.rows});
    pack_outputs({scratch.rows, count}, part.output_begin, outputs, scratch.outputs);
    const int64_t around = count + 2 * chunk.reach + 1;
    for (int64_t plane = 0; plane < pixels.planes(); ++plane) {
      pixels.walk_plane(plane, first - chunk.reach, first - chunk.reach + around,
                        RowFinder{static_cast<const uint16_t*>(a.x), a.inputs, scratch.zeros,
                                  scratch.rows + plane * around});
    }
    chunk.steps = count / kDepth;
    chunk.rows = count / 2 + chunk.reach;
    chunk.adds = a.taps == 1 || first > 0;
    for (int64_t input = 0; input < inputs; input += input_block(pixels)) {
      chunk.inputs = smaller(input_block(pixels), inputs - input);
      const PairBlock block{part.input_begin + input, chunk.inputs, chunk.rows};
      Word* to = scratch.inputs;
      for (int64_t plane = 0; plane < pixels.planes(); ++plane) {
        const Places places{scratch.rows + plane * around, around};
        for (int64_t odd = 0; odd < (a.taps == 1 ? 1 : 2); ++odd) {
          pack_inputs(places, odd, block, to);
          to += chunk.inputs * chunk.rows;
        }
      }
      chunk.sums = (a.taps == 1 ? gradient : scratch.sums) + input;
      add_chunk(chunk, pixels, a.taps);
    }
  }
  if (a.taps != 1) add_taps({scratch.sums, outputs, inputs}, gradient, a.inputs);
}

}  // namespace

void fill_weight_gradient(Kernels& table) { table.weight_gradient = {add, scratch_bytes}; }

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
