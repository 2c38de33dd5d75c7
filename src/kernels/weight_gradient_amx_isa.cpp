// The kernels of weight_gradient.h with the tile products of Intel's AMX: TDPBF16PS adds to
// c [16, 16] fp32 the product of a [16, 32] and b [32, 16], both bf16, where row q of b's tile holds
// the pairs (b[2q, j], b[2q + 1, j]).
//
// a is d_y transposed, [outputs, pixels], b is x, [pixels, inputs], in pairs of neighbouring pixels.
// A tap shifts the pixels of x: by an even number of them to another row of the pairs, by an odd
// one to those of a second copy whose pairs begin at odd pixels.
#include "kernels/weight_gradient.h"

#include <immintrin.h>

#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kDepth = 32;         // pixels that one tile product sums over
constexpr int64_t kChunk = 2048;       // pixels for which both sides are packed; then they are in L2
constexpr int64_t kInputBlock = 128;   // inputs that are packed beside them
constexpr int64_t kTileWords = 256;    // 32-bit words of a tile, pairs of bf16

typedef uint32_t Word __attribute__((may_alias));

// GCC's own macro for loads does not say that it reads memory.
#define LOCKSTEP_LOAD_TILE(tile, from) \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"(int64_t{64}) : "memory")
#define LOCKSTEP_STORE_TILE(tile, to) \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"(int64_t{64}) : "memory")
#define LOCKSTEP_MULTIPLY_TILES(c, a, b) \
  __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
#define LOCKSTEP_ZERO_TILE(tile) __asm__ volatile("tilezero %%tmm" #tile ::)

// All eight tiles of full size, while it lives. Every thread has its own.
class Tiles {
 public:
  Tiles() {
    alignas(64) uint8_t config[64] = {};
    config[0] = 1;  // the palette
    for (int i = 0; i < 8; ++i) {
      config[16 + 2 * i] = 64;  // bytes of a row
      config[48 + i] = 16;      // rows
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  ~Tiles() { __asm__ volatile("tilerelease" ::); }
};

// The sequence of pixels, with the zeros between them.
class Pixels {
 public:
  explicit Pixels(const WeightGradientArgs& a)
      : height_(a.height),
        width_(a.width),
        border_(a.taps == 1 ? 0 : 1),
        line_(a.width + border_),
        image_((a.height + border_) * line_),
        count_(a.images * image_) {}

  int64_t count() const { return count_; }
  int64_t line() const { return line_; }
  // How far a tap shifts x.
  int64_t shift(int64_t tap) const {
    return border_ == 0 ? 0 : (tap / 3 - 1) * line_ + tap % 3 - 1;
  }
  int64_t largest_shift() const { return border_ == 0 ? 0 : line_ + 1; }

  // Calls f(i, pixel) for every place begin + i < end of the sequence: the number of the pixel that
  // lies there, or -1 for zeros.
  template <class F>
  void walk(int64_t begin, int64_t end, const F& f) const {
    int64_t at = begin;
    for (; at < end && at < 0; ++at) f(at - begin, int64_t{-1});
    if (at >= count_) {
      for (; at < end; ++at) f(at - begin, int64_t{-1});
      return;
    }
    int64_t image = at / image_, line = at % image_ / line_, column = at % line_;
    for (; at < end; ++at) {
      const bool inside = at < count_ && line < height_ && column < width_;
      f(at - begin, inside ? (image * height_ + line) * width_ + column : int64_t{-1});
      if (++column < line_) continue;
      column = 0;
      if (++line < height_ + border_) continue;
      line = 0;
      ++image;
    }
  }

 private:
  int64_t height_, width_, border_, line_, image_, count_;
};

// Where the channels of each place of a chunk lie.
struct Places {
  const uint16_t** row;
  int64_t count;
};

void find_rows(const Pixels& pixels, int64_t begin, const void* from, int64_t channels,
               const uint16_t* zeros, const Places& places) {
  const auto* base = static_cast<const uint16_t*>(from);
  pixels.walk(begin, begin + places.count, [&](int64_t i, int64_t pixel) {
    places.row[i] = pixel < 0 ? zeros : base + pixel * channels;
  });
}

// 16 pairs (a[j], b[j]).
inline __m512i pairs(const uint16_t* a, const uint16_t* b) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)a));
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)b));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// Rows come from memory in pieces, which the processor does not foresee by itself.
constexpr int64_t kAhead = 48;  // places
inline void fetch(const Places& places, int64_t at, int64_t channel, int64_t channels) {
  const int64_t place = at + kAhead;
  if (place >= places.count) return;
  const uint16_t* row = places.row[place] + channel;
  for (int64_t i = 0; i < channels; i += 32) __builtin_prefetch(row + i);
}

// to: [inputs / 16, places / 2, 16] pairs, of the places first, first + 2, ... each with the next.
void pack_inputs(const Places& places, int64_t first, int64_t input, int64_t inputs, int64_t rows,
                 Word* to) {
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

// to: [outputs / 16, places / 32] tiles of [16 outputs, 16 pairs of places].
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
    LOCKSTEP_LOAD_TILE(4, block.a0 + at);
    LOCKSTEP_LOAD_TILE(6, block.b0 + at);
    LOCKSTEP_MULTIPLY_TILES(0, 4, 6);
    LOCKSTEP_LOAD_TILE(7, block.b1 + at);
    LOCKSTEP_MULTIPLY_TILES(1, 4, 7);
    LOCKSTEP_LOAD_TILE(5, block.a1 + at);
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

// gradient [outputs, inputs, 9] += sums [9, outputs, inputs].
void add_taps(const float* sums, int64_t outputs, int64_t inputs, float* gradient) {
  const int64_t step = outputs * inputs;
  for (int64_t i = 0; i < step; ++i, gradient += 9) {
#pragma GCC unroll 9
    for (int64_t tap = 0; tap < 9; ++tap) gradient[tap] += sums[tap * step + i];
  }
}

int64_t chunk_of(const Pixels& pixels) {
  const int64_t all = (pixels.count() + kDepth - 1) / kDepth * kDepth;
  return smaller(all, kChunk);
}

// The parts of the scratch memory.
struct Scratch {
  const uint16_t** rows;  // of d_y's and of x's places
  uint16_t* zeros;        // as many as there are channels
  Word* outputs;
  Word* inputs;  // even pairs, then odd ones
  float* sums;   // [taps, outputs, inputs]; with one tap the gradient itself
  int64_t bytes;

  Scratch(const WeightGradientArgs& a, int64_t count, void* memory) {
    const Pixels pixels(a);
    const int64_t chunk = chunk_of(pixels), reach = chunk + 2 * pixels.largest_shift() + 4;
    const int64_t channels = a.inputs < a.outputs ? a.outputs : a.inputs;
    auto* at = static_cast<char*>(memory);
    auto take = [&](int64_t size) {
      char* part = at;
      at += (size + 63) / 64 * 64;
      return part;
    };
    rows = reinterpret_cast<const uint16_t**>(take(reach * 8));
    zeros = reinterpret_cast<uint16_t*>(take(channels * 2));
    outputs = reinterpret_cast<Word*>(take(count * chunk * 2));
    inputs = reinterpret_cast<Word*>(take(kInputBlock * (reach / 2 + 1) * 4 * (a.taps == 1 ? 1 : 2)));
    sums = a.taps == 1 ? nullptr
                       : reinterpret_cast<float*>(take(a.taps * count * a.inputs * 4));
    bytes = at - static_cast<char*>(memory);
  }
};

int64_t scratch_bytes(const WeightGradientArgs& a, int64_t outputs) {
  return Scratch(a, outputs, nullptr).bytes;
}

void add(const WeightGradientArgs& a, int64_t begin, int64_t end, void* memory) {
  const Tiles tiles;
  const Pixels pixels(a);
  const int64_t outputs = end - begin, chunk = chunk_of(pixels);
  const Scratch scratch(a, outputs, memory);
  const int64_t channels = a.inputs < a.outputs ? a.outputs : a.inputs;
  for (int64_t i = 0; i < channels; ++i) scratch.zeros[i] = 0;
  float* sums = a.taps == 1 ? a.gradient + begin * a.inputs : scratch.sums;
  const int64_t reach = (pixels.largest_shift() + 1) / 2 * 2;  // even: pairs of the chunk's own
  const int64_t rows = (chunk + 2 * reach) / 2;
  Word* odd = scratch.inputs + kInputBlock * rows;
  alignas(64) float c[1024];
  for (int64_t first = 0; first < pixels.count(); first += chunk) {
    const int64_t left = (pixels.count() - first + kDepth - 1) / kDepth * kDepth;
    const int64_t count = smaller(chunk, left), steps = count / kDepth;
    find_rows(pixels, first, a.d_y, a.outputs, scratch.zeros, {scratch.rows, count});
    pack_outputs({scratch.rows, count}, begin, outputs, scratch.outputs);
    const Places around{scratch.rows, count + 2 * reach + 1};
    find_rows(pixels, first - reach, a.x, a.inputs, scratch.zeros, around);
    for (int64_t input = 0; input < a.inputs; input += kInputBlock) {
      const int64_t block = smaller(kInputBlock, a.inputs - input);
      pack_inputs(around, 0, input, block, rows, scratch.inputs);
      if (a.taps != 1) pack_inputs(around, 1, input, block, rows, odd);
      for (int64_t o = 0; o < outputs; o += 32) {
        for (int64_t i = 0; i < block; i += 32) {
          for (int64_t tap = 0; tap < a.taps; ++tap) {
            const int64_t shift = reach + pixels.shift(tap);
            const Word* b = (shift % 2 == 0 ? scratch.inputs : odd) + i * rows + shift / 2 * 16;
            const Word* from = scratch.outputs + o / 16 * steps * kTileWords;
            multiply({from, from + steps * kTileWords, b, b + rows * 16, steps}, c);
            add_block(c, sums + (tap * outputs + o) * a.inputs + input + i, a.inputs,
                      a.taps == 1 || first > 0);
          }
        }
      }
    }
  }
  if (a.taps != 1) add_taps(sums, outputs, a.inputs, a.gradient + begin * a.inputs * a.taps);
}

}  // namespace

void fill_weight_gradient(Kernels& table) { table.weight_gradient = {add, scratch_bytes}; }

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
