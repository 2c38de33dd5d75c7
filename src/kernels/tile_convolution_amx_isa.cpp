// The kernels of tile_convolution.h. A chunk of the sequence of pixels, zeros included, is copied
// to where it stays in the cache; then a tap is a shift along it, and the convolution a product of
// [places, 9 * inputs], read nine times, and [9 * inputs, outputs].
#include "kernels/tile_convolution.h"

#include "kernels/isa_math.h"
#include "kernels/pixel_sequence_isa.h"
#include "kernels/tiles_amx_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kTaps = 9;
constexpr int64_t kBlock = 32;          // places, and outputs, of a block of four tiles of sums
constexpr int64_t kTileElements = 512;  // bf16 of a tile

typedef uint16_t Half __attribute__((may_alias));

// The pairs of one tile of every tap: to [taps] tiles, `step` elements apart.
inline void pack_tiles(const TileWeightArgs& a, int64_t output, int64_t input, Half* to,
                       int64_t step) {
  const auto* weight = static_cast<const Half*>(a.weight);
  // From one output to the next, and from one input to the next.
  const int64_t by_output = kTaps * (a.backward ? 1 : a.columns);
  const int64_t by_input = kTaps * (a.backward ? a.columns : 1);
  for (int64_t q = 0; q < kBlock / 2; ++q) {
    for (int64_t o = 0; o < 16; ++o) {
      const Half* from = weight + (output + o) * by_output + (input + 2 * q) * by_input;
      Half* at = to + q * kBlock + 2 * o;
#pragma GCC unroll 9
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        const int64_t tile = (a.backward ? kTaps - 1 - tap : tap) * step;
        const uint32_t pair = from[tap] | static_cast<uint32_t>(from[by_input + tap]) << 16;
        __builtin_memcpy(at + tile, &pair, 4);
      }
    }
  }
}

// packed: [outputs / 16, taps, inputs / 32] tiles of 16 pairs of inputs by 16 outputs.
void pack(const TileWeightArgs& a, int64_t begin, int64_t end) {
  const int64_t inputs = a.backward ? a.rows : a.columns;
  const int64_t step = inputs / kBlock * kTileElements;
  for (int64_t o = begin; o < end; o += 16) {
    Half* to = static_cast<Half*>(a.packed) + o / 16 * kTaps * step;
    for (int64_t i = 0; i < inputs; i += kBlock) {
      pack_tiles(a, o, i, to + i / kBlock * kTileElements, step);
    }
  }
}

int64_t chunk_of(const TileConvolutionArgs& a) {
  constexpr int64_t kBytes = 1 << 19;
  const int64_t places = kBytes / (a.inputs * 2) / kBlock * kBlock;
  return places < 4 * kBlock ? 4 * kBlock : places;
}

Pixels sequence(const TileConvolutionArgs& a, int64_t images) {
  return Pixels({images, a.height, a.width, kTaps});
}

int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t scratch_bytes(const TileConvolutionArgs& a) {
  const int64_t chunk = chunk_of(a), around = chunk + 2 * sequence(a, 1).largest_shift();
  return round_up(chunk * 8) + round_up(around * a.inputs * 2);
}

inline void copy_row(const Half* from, int64_t count, Half* to) {
  for (int64_t i = 0; i < count; i += 32) {
    _mm512_store_si512(to + i, _mm512_loadu_si512(from + i));
  }
}
inline void clear_row(int64_t count, Half* to) {
  for (int64_t i = 0; i < count; i += 32) _mm512_store_si512(to + i, _mm512_setzero_si512());
}

// c [2, 2] tiles of sums: 32 places by 32 outputs.
struct Sums {
  const Half* x;       // of the first place and tap, in the copy
  int64_t row_bytes;   // between places
  const int64_t* tap;  // [taps]: elements from x to the tap's place
  const Half* weight0;
  const Half* weight1;
  int64_t steps;  // inputs / 32
};
inline void multiply(const Sums& s, float* c) {
  LOCKSTEP_ZERO_TILE(0);
  LOCKSTEP_ZERO_TILE(1);
  LOCKSTEP_ZERO_TILE(2);
  LOCKSTEP_ZERO_TILE(3);
  const Half *w0 = s.weight0, *w1 = s.weight1;
  const int64_t second = 8 * s.row_bytes;  // elements: 16 places
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    const Half* x = s.x + s.tap[tap];
    for (int64_t k = 0; k < s.steps; ++k, x += kBlock, w0 += kTileElements, w1 += kTileElements) {
      LOCKSTEP_LOAD_TILE(4, x, s.row_bytes);
      LOCKSTEP_LOAD_TILE(6, w0, 64);
      LOCKSTEP_MULTIPLY_TILES(0, 4, 6);
      LOCKSTEP_LOAD_TILE(7, w1, 64);
      LOCKSTEP_MULTIPLY_TILES(1, 4, 7);
      LOCKSTEP_LOAD_TILE(5, x + second, s.row_bytes);
      LOCKSTEP_MULTIPLY_TILES(2, 5, 6);
      LOCKSTEP_MULTIPLY_TILES(3, 5, 7);
    }
  }
  LOCKSTEP_STORE_TILE(0, c);
  LOCKSTEP_STORE_TILE(1, c + 256);
  LOCKSTEP_STORE_TILE(2, c + 512);
  LOCKSTEP_STORE_TILE(3, c + 768);
}

// The sums of those of the 32 places that are pixels (others: -1), rounded.
inline void store(const float* c, const int64_t* pixel, Half* y, int64_t outputs) {
  for (int64_t p = 0; p < kBlock; ++p) {
    if (pixel[p] < 0) continue;
    const float* from = c + (p / 16 * 32 + p % 16) * 16;
    const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_load_ps(from + 256), _mm512_load_ps(from));
    _mm512_storeu_si512(y + pixel[p] * outputs, (__m512i)both);
  }
}

void convolve(const TileConvolutionArgs& a, const TileConvolutionPart& part, void* memory) {
  const Tiles tiles;
  const Pixels pixels = sequence(a, part.image_end - part.image_begin);
  const int64_t chunk = chunk_of(a), reach = pixels.largest_shift(), steps = a.inputs / kBlock;
  auto* number = static_cast<int64_t*>(memory);
  auto* copy = reinterpret_cast<Half*>(static_cast<char*>(memory) + round_up(chunk * 8));
  const int64_t first_pixel = part.image_begin * a.height * a.width;
  const Half* x = static_cast<const Half*>(a.x) + first_pixel * a.inputs;
  Half* y = static_cast<Half*>(a.y) + first_pixel * a.outputs;
  int64_t tap[kTaps];
  for (int64_t t = 0; t < kTaps; ++t) tap[t] = (reach + pixels.shift(t)) * a.inputs;
  alignas(64) float c[1024];
  for (int64_t first = 0; first < pixels.count(); first += chunk) {
    const int64_t left = (pixels.count() - first + kBlock - 1) / kBlock * kBlock;
    const int64_t count = smaller(chunk, left);
    pixels.walk(first - reach, first + count + reach, [&](int64_t i, int64_t pixel) {
      Half* to = copy + i * a.inputs;
      pixel < 0 ? clear_row(a.inputs, to) : copy_row(x + pixel * a.inputs, a.inputs, to);
      if (i >= reach && i < reach + count) number[i - reach] = pixel;
    });
    for (int64_t o = part.output_begin; o < part.output_end; o += kBlock) {
      const Half* weight =
          static_cast<const Half*>(a.weight) + o / 16 * kTaps * steps * kTileElements;
      for (int64_t p = 0; p < count; p += kBlock) {
        multiply({copy + p * a.inputs, a.inputs * 2, tap, weight,
                  weight + kTaps * steps * kTileElements, steps},
                 c);
        store(c, number + p, y + o, a.outputs);
      }
    }
  }
}

}  // namespace

void fill_tile_convolution(Kernels& table) {
  table.tile_convolution = {pack, convolve, scratch_bytes};
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
