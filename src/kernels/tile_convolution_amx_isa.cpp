// Implements the kernels of tile_convolution.h. For 3 x 3, a chunk of the sequence of pixels, zeros
// included, is copied into a buffer that stays in the cache; a tap is then a shift along it, and
// the convolution a product of [places, 9 * inputs], read nine times, and [9 * inputs, outputs].
#include "kernels/tile_convolution.h"

#include "kernels/isa_math.h"
#include "kernels/pixel_sequence_isa.h"
#include "kernels/tiles_amx_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kBlock = 32;          // places, and outputs, of a block: four tiles of sums
constexpr int64_t kTileElements = 512;  // bf16 in a tile

typedef uint16_t Half __attribute__((may_alias));

// Packs the pairs of one tile of every tap to [taps] tiles, `step` elements apart.
template <int kTaps>
inline void pack_tiles(const TileWeightArgs& a, int64_t output, int64_t input, Half* to,
                       int64_t step) {
  const auto* weight = static_cast<const Half*>(a.weight);
  // Distances from one output to the next, and from one input to the next.
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

// Packs to [outputs / 16, taps, inputs / 32] tiles of 16 pairs of inputs by 16 outputs.
template <int kTaps>
void pack_as(const TileWeightArgs& a, int64_t begin, int64_t end) {
  const int64_t inputs = a.backward ? a.rows : a.columns;
  const int64_t step = inputs / kBlock * kTileElements;
  for (int64_t o = begin; o < end; o += 16) {
    Half* to = static_cast<Half*>(a.packed) + o / 16 * kTaps * step;
    for (int64_t i = 0; i < inputs; i += kBlock) {
      pack_tiles<kTaps>(a, o, i, to + i / kBlock * kTileElements, step);
    }
  }
}

void pack(const TileWeightArgs& a, int64_t begin, int64_t end) {
  a.taps == 1 ? pack_as<1>(a, begin, end) : pack_as<9>(a, begin, end);
}

Pixels sequence(const TileConvolutionArgs& a) {
  return Pixels({a.images, a.height, a.width, a.taps, a.stride});
}

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Returns the places of a chunk: what fits half a mebibyte, rounded so that there is an even number
// of chunks of equal length.
int64_t chunk_of(const TileConvolutionArgs& a) {
  constexpr int64_t kBytes = 1 << 19;
  const Pixels pixels = sequence(a);
  const int64_t fitting = kBytes / (a.inputs * 2 * pixels.planes()), all = pixels.count();
  const int64_t pairs = (all + 2 * fitting - 1) / (2 * fitting);
  return round_up((all + 2 * pairs - 1) / (2 * pairs), kBlock);
}

int64_t chunks(const TileConvolutionArgs& a) {
  const int64_t chunk = chunk_of(a);
  return (sequence(a).count() + chunk - 1) / chunk;
}

int64_t scratch_bytes(const TileConvolutionArgs& a) {
  const Pixels pixels = sequence(a);
  const int64_t chunk = chunk_of(a), around = chunk + 2 * pixels.largest_shift();
  return round_up(chunk * 8, 64) + pixels.planes() * around * a.inputs * 2;
}

inline void copy_row(const Half* from, int64_t count, Half* to) {
  for (int64_t i = 0; i < count; i += 32) {
    _mm512_store_si512(to + i, _mm512_loadu_si512(from + i));
  }
}
inline void clear_row(int64_t count, Half* to) {
  for (int64_t i = 0; i < count; i += 32) _mm512_store_si512(to + i, _mm512_setzero_si512());
}

// The factors of c, [2, 2] tiles of sums: 32 places by 32 outputs.
struct Sums {
  const Half* x;       // of the first place
  int64_t row_bytes;   // between places
  const int64_t* tap;  // [taps]: elements from x to the tap's place
  const Half* weight0;
  const Half* weight1;
  int64_t steps;  // inputs / 32
};
template <int kTaps>
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

// Running moments of 32 outputs.
struct Moments {
  __m512 first[2], sum[2], squares[2];
};

inline __m512 widened(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

enum class StoreUse { kStore, kMeasure, kAdd };

// Stores the rounded sums of those of the 32 places that are pixels (others: -1). With kMeasure it
// also adds them to the moments; with kAdd it adds to what is in y. `pixels` is the number of
// pixels before; returns the number after.
template <StoreUse kUse>
inline int64_t store(const float* c, const int64_t* pixel, Half* y, int64_t outputs,
                     Moments& moments, int64_t pixels) {
  for (int64_t p = 0; p < kBlock; ++p) {
    if (pixel[p] < 0) continue;
    const float* from = c + (p / 16 * 32 + p % 16) * 16;
    Half* at = y + pixel[p] * outputs;
    __m512 low = _mm512_load_ps(from), high = _mm512_load_ps(from + 256);
    if (kUse == StoreUse::kAdd) {
      const __m512i before = _mm512_loadu_si512(at);
      low = _mm512_add_ps(low, widened(_mm512_castsi512_si256(before)));
      high = _mm512_add_ps(high, widened(_mm512_extracti64x4_epi64(before, 1)));
    }
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    _mm512_storeu_si512(at, both);
    if (kUse != StoreUse::kMeasure) continue;
    const __m512 value[2] = {widened(_mm512_castsi512_si256(both)),
                             widened(_mm512_extracti64x4_epi64(both, 1))};
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      if (pixels == 0) moments.first[i] = value[i];
      const __m512 distance = _mm512_sub_ps(value[i], moments.first[i]);
      moments.sum[i] = _mm512_add_ps(moments.sum[i], distance);
      moments.squares[i] = _mm512_fmadd_ps(distance, distance, moments.squares[i]);
    }
    ++pixels;
  }
  return pixels;
}

inline void save(const Moments& moments, const TileConvolutionArgs& a, int64_t at) {
  for (int64_t i = 0; i < 2; ++i) {
    _mm512_storeu_ps(a.first + at + i * 16, moments.first[i]);
    _mm512_storeu_ps(a.sum + at + i * 16, moments.sum[i]);
    _mm512_storeu_ps(a.squares + at + i * 16, moments.squares[i]);
  }
}

// A chunk as the products read it: rows of places, and the number of the pixel at each place.
struct Chunk {
  const Half* rows;
  const int64_t* pixel;
  int64_t places;
  const int64_t* tap;
};

template <int kTaps, StoreUse kUse>
void convolve_chunk(const TileConvolutionArgs& a, const TileConvolutionPart& part,
                    const Chunk& chunk, int64_t number) {
  alignas(64) float c[1024];
  const int64_t steps = a.inputs / kBlock;
  for (int64_t o = part.output_begin; o < part.output_end; o += kBlock) {
    const Half* weight =
        static_cast<const Half*>(a.weight) + o / 16 * kTaps * steps * kTileElements;
    Moments moments{};
    int64_t pixels = 0;
    for (int64_t p = 0; p < chunk.places; p += kBlock) {
      multiply<kTaps>({chunk.rows + p * a.inputs, a.inputs * 2, chunk.tap, weight,
                       weight + kTaps * steps * kTileElements, steps},
                      c);
      pixels =
          store<kUse>(c, chunk.pixel + p, static_cast<Half*>(a.y) + o, a.outputs, moments, pixels);
    }
    if (kUse != StoreUse::kMeasure) continue;
    save(moments, a, number * a.outputs + o);
    if (o == 0) a.pixels[number] = pixels;
  }
}

template <int kTaps>
void convolve_as(const TileConvolutionArgs& a, const TileConvolutionPart& part, void* memory) {
  const Tiles tiles;
  const Pixels pixels = sequence(a);
  const int64_t size = chunk_of(a), reach = pixels.largest_shift();
  auto* number = static_cast<int64_t*>(memory);
  auto* copy = reinterpret_cast<Half*>(static_cast<char*>(memory) + round_up(size * 8, 64));
  const Half* x = static_cast<const Half*>(a.x);
  const int64_t around = size + 2 * reach;
  int64_t tap[kTaps];
  for (int64_t t = 0; t < kTaps; ++t) {
    tap[t] = (pixels.plane(t) * around + reach + pixels.shift(t)) * a.inputs;
  }
  for (int64_t i = part.chunk_begin; i < part.chunk_end; ++i) {
    const int64_t first = i * size, left = smaller(size, pixels.count() - first);
    Chunk chunk{copy, number, round_up(left, kBlock), tap};
    pixels.walk(first, first + chunk.places,
                [&](int64_t at, int64_t pixel) { number[at] = pixel; });
    // Single pixels are read where they are, unless the last block reaches beyond them.
    if (kTaps == 1 && left == chunk.places) {
      chunk.rows = x + first * a.inputs;
    } else {
      for (int64_t plane = 0; plane < pixels.planes(); ++plane) {
        Half* rows = copy + plane * around * a.inputs;
        pixels.walk_plane(
            plane, first - reach, first + chunk.places + reach, [&](int64_t at, int64_t pixel) {
              Half* to = rows + at * a.inputs;
              pixel < 0 ? clear_row(a.inputs, to) : copy_row(x + pixel * a.inputs, a.inputs, to);
            });
      }
    }
    if (a.adds) {
      convolve_chunk<kTaps, StoreUse::kAdd>(a, part, chunk, i);
    } else if (a.sum != nullptr) {
      convolve_chunk<kTaps, StoreUse::kMeasure>(a, part, chunk, i);
    } else {
      convolve_chunk<kTaps, StoreUse::kStore>(a, part, chunk, i);
    }
  }
}

void convolve(const TileConvolutionArgs& a, const TileConvolutionPart& part, void* memory) {
  a.taps == 1 ? convolve_as<1>(a, part, memory) : convolve_as<9>(a, part, memory);
}

}  // namespace

void fill_tile_convolution(Kernels& table) {
  table.tile_convolution = {pack, convolve, scratch_bytes, chunks};
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
