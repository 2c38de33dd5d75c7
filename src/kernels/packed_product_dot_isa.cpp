// Implements the kernels of packed_product.h. Tiles of sums, rows of x by vectors of outputs, stay
// in registers over all inputs; each step multiplies one group of 4 bytes of every row, broadcast,
// by one group of every output.
#include "kernels/packed_product.h"

#include "kernels/group_dots_isa.h"
#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

inline Lanes as_floats(Lanes x) { return x; }
inline Lanes as_floats(IntLanes x) { return __builtin_convertvector(x, Lanes); }

// Returns y for one vector of outputs, from `column` on.
inline Lanes finished(const PackedProductArgs& a, Lanes sum, int64_t, int64_t column) {
  return a.bias == nullptr ? sum : sum + *reinterpret_cast<const StoredLanes*>(a.bias + column);
}
inline Lanes finished(const PackedProductArgs& a, IntLanes sum, int64_t row, int64_t column) {
#if defined(__ARM_FEATURE_DOTPROD)
  const IntLanes exact = sum;  // of x - 128
#else
  const IntLanes exact = sum - *reinterpret_cast<const StoredInts*>(a.offset + column);
#endif
  const Lanes scale = a.row_scale[row] * *reinterpret_cast<const StoredLanes*>(a.scale + column);
  return as_floats(exact) * scale + *reinterpret_cast<const StoredLanes*>(a.bias + column);
}

template <bool kAdds, class T>
inline void put(Lanes y, T* out) {
  store_lanes(kAdds ? load_lanes(out) + y : y, out);
}

inline void put(const PackedProductArgs& a, Lanes y, int64_t at) {
  const bool adds = a.end == ProductEnd::kAdd;
  if (a.out_is_bf16) {
    Bf16* out = static_cast<Bf16*>(a.out) + at;
    adds ? put<true>(y, out) : put<false>(y, out);
  } else {
    float* out = static_cast<float*>(a.out) + at;
    adds ? put<true>(y, out) : put<false>(y, out);
  }
}

// Stores y [n < kLanes], the outputs after the last whole vector.
inline void put_part(const PackedProductArgs& a, Lanes y, int64_t at, int64_t n) {
  const std::size_t bytes = static_cast<std::size_t>(n) * (a.out_is_bf16 ? 2 : 4);
  char* out = static_cast<char*>(a.out) + at * (a.out_is_bf16 ? 2 : 4);
  alignas(64) float whole[kLanes] = {};
  __builtin_memcpy(whole, out, bytes);
  PackedProductArgs own = a;
  own.out = whole;
  put(own, y, 0);
  __builtin_memcpy(out, whole, bytes);
}

struct TilePlace {
  int64_t row, column;   // column: the first output
  int64_t out_column;    // where it is in `out`
  const Group* weights;  // of the first group
};

// Stores a tile of plain sums, without bias or ReLU: most products of training end so.
template <bool kAdds, int kRows, int kVectors, class Sum, class T>
inline void store_tile(const Sum (&sum)[kRows][kVectors], T* out, int64_t stride) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r, out += stride) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) put<kAdds>(as_floats(sum[r][v]), out + v * kLanes);
  }
}
template <int kRows, int kVectors, class Sum>
inline void store_tile(const PackedProductArgs& a, const Sum (&sum)[kRows][kVectors], int64_t at) {
  const bool adds = a.end == ProductEnd::kAdd;
  if (a.out_is_bf16) {
    Bf16* out = static_cast<Bf16*>(a.out) + at;
    adds ? store_tile<true>(sum, out, a.out_stride) : store_tile<false>(sum, out, a.out_stride);
  } else {
    float* out = static_cast<float*>(a.out) + at;
    adds ? store_tile<true>(sum, out, a.out_stride) : store_tile<false>(sum, out, a.out_stride);
  }
}

// Whether what a tile will be written to is fetched while its sums are made. Measured on CPUs with
// AVX2 alone (benchmarks/notes/2026-11-avx2.md).
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr bool kFetchesSums = true;
#else
constexpr bool kFetchesSums = false;
#endif

template <int kRows>
inline void fetch_rows(const PackedProductArgs& a, int64_t at, int64_t width) {
  const int64_t element = a.out_is_bf16 ? 2 : 4;
  const char* out = static_cast<const char*>(a.out) + at * element;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r, out += a.out_stride * element) {
    __builtin_prefetch(out, 1);
    __builtin_prefetch(out + (width - 1) * element, 1);
  }
}

template <class Dot, int kRows, int kVectors>
inline void tile(const PackedProductArgs& a, const TilePlace& place) {
  // As a template's argument the type loses what Lanes says of its alignment, so store_tile() may
  // read it by instructions that want all of it.
  alignas(64) typename Dot::Sum sum[kRows][kVectors] = {};
  const int64_t at = place.row * a.out_stride + place.out_column;
  if constexpr (kFetchesSums) fetch_rows<kRows>(a, at, kVectors * kLanes);
  const int64_t stride = a.x_stride / 4, step = a.x_step / 4, next = a.panel_outputs;
  const Group* x = static_cast<const Group*>(a.x) + place.row * stride;
  const Group* w = place.weights;
  for (int64_t g = 0; g < a.groups; ++g, x += step, w += next) {
    typename Dot::Weights weights[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weights[v] = Dot::weights(w + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const typename Dot::Input input = Dot::input(x[r * stride]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) Dot::add(sum[r][v], input, weights[v]);
    }
  }
  const bool whole = place.column + kVectors * kLanes <= a.outputs;
  if (whole && a.bias == nullptr && a.end != ProductEnd::kStoreRelu) return store_tile(a, sum, at);
    // Unrolled, because the sums would otherwise go through memory.
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = place.column + v * kLanes;
      const int64_t left = a.outputs - column;
      if (left <= 0) break;
      Lanes y = finished(a, sum[r][v], place.row + r, column);
      if (a.end == ProductEnd::kStoreRelu) y = (Lanes)((IntLanes)y & (y > Lanes{}));
      const int64_t out = at + r * a.out_stride + v * kLanes;
      left >= kLanes ? put(a, y, out) : put_part(a, y, out, left);
    }
  }
}

// The tile's sums take 24 of the 32 registers of AVX-512, 16 of 32 of NEON. Elsewhere they take 12
// of 16, or 8 where a group of weights takes two registers a vector. Without vectors each lane
// takes a register.
#if defined(__AVX512F__)
template <class Dot>
constexpr int kTileRows = 6;
constexpr int kTileVectors = 4;
#elif defined(__aarch64__)
template <class Dot>
constexpr int kTileRows = 4;
constexpr int kTileVectors = 4;
#elif !defined(__SSE2__) && !defined(__ARM_NEON)
template <class Dot>
constexpr int kTileRows = 2;
constexpr int kTileVectors = 1;
#else
template <class Dot>
constexpr int kTileRows = sizeof(typename Dot::Weights) == sizeof(Lanes) ? 6 : 4;
constexpr int kTileVectors = 2;
#endif
constexpr int64_t kTileOutputs = kTileVectors * kLanes;

// Computes all outputs of one panel for `rows` rows from place.row on.
template <class Dot, int kRows>
inline void panel_rows(const PackedProductArgs& a, TilePlace place, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return panel_rows<Dot, kRows - 1>(a, place, rows);
  }
  const int64_t end = smaller(place.column + a.panel_outputs, a.outputs);
  for (; place.column < end; place.column += kTileOutputs) {
    tile<Dot, kRows, kTileVectors>(a, place);
    place.out_column += kTileOutputs;
    place.weights += kTileOutputs;
  }
}

template <class Dot>
void packed_product(const PackedProductArgs& a, const PackedProductRange& range) {
  // A block is as many rows of x as stay in the cache beside a panel while all panels pass.
  constexpr int64_t kCachedBytes = 1 << 18;
  constexpr int kRows = kTileRows<Dot>;
  const int64_t fitting = kCachedBytes / (a.groups * 4) / kRows * kRows;
  const int64_t block = fitting > kRows ? fitting : kRows;
  const int64_t panel_groups = a.groups * a.panel_outputs;
  for (int64_t first = range.row_begin; first < range.row_end; first += block) {
    const int64_t last = smaller(first + block, range.row_end);
    for (int64_t panel = range.panel_begin; panel < range.panel_end; ++panel) {
      for (int64_t row = first; row < last; row += kRows) {
        const TilePlace place{row, panel * a.panel_outputs,
                              (panel - range.panel_begin) * a.panel_outputs,
                              static_cast<const Group*>(a.panels) + panel * panel_groups};
        panel_rows<Dot, kRows>(a, place, smaller(kRows, last - row));
      }
    }
  }
}

void quantise_rows(const QuantiseRowsArgs& a, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* x = a.x + r * a.width;
    uint8_t* out = a.out + r * a.stride;
    float largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t j = 0; j < a.width; ++j) {
      const float magnitude = __builtin_fabsf(x[j]);
      largest = magnitude > largest ? magnitude : largest;
    }
    const float factor = largest > 0 ? 127.0f / largest : 0.0f;
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
#pragma omp simd
    for (int64_t j = 0; j < a.width; ++j) {
      const float rounded = x[j] * factor + kRound;
      out[j] = static_cast<uint8_t>(__builtin_bit_cast(uint32_t, rounded) + 128u);
    }
    for (int64_t j = a.width; j < a.stride; ++j) out[j] = 128;
    a.row_scale[r] = largest > 0 ? largest / 127.0f : 1.0f;
  }
}

}  // namespace

void fill_packed_product(Kernels& table) {
  table.packed_product.fp32 = packed_product<Fp32Dot>;
  table.packed_product.bf16 = packed_product<Bf16Dot>;
  table.packed_product.int8 = packed_product<Int8Dot>;
  table.packed_product.quantise_rows = quantise_rows;
  table.packed_product.tile_outputs = kTileOutputs;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
