// Computes batch normalisation (Ioffe and Szegedy 2015) over rows of channels in fp32, and reorders
// the weights of the convolutions before it.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

// Channels whose sums over rows are made at a time: these sums stay in registers.
constexpr int64_t kStrip = 64;

// Calls body(first, count). For whole strips count is the constant kStrip, so that loops get a
// fixed length.
template <class Body>
inline void for_strips(int64_t channels, const Body& body) {
  int64_t first = 0;
  for (; first + kStrip <= channels; first += kStrip) body(first, kStrip);
  if (first < channels) body(first, channels - first);
}

template <class T>
void batch_norm_sums(const BatchNormSumsArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t channels = a.channels;
  for_strips(channels, [&](int64_t first, int64_t count) {
    alignas(64) float origin[kStrip], sum[kStrip] = {}, squares[kStrip] = {};
    const T* x = a.x + begin * channels + first;
    for (int64_t j = 0; j < count; ++j) origin[j] = to_float(x[j]);
    auto add = [&](int64_t n) {
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) {
        const float distance = to_float(x[j]) - origin[j];
        sum[j] += distance;
        squares[j] += distance * distance;
      }
    };
    if (count == kStrip) {
      for (int64_t r = begin; r < end; ++r, x += channels) add(kStrip);
    } else {
      for (int64_t r = begin; r < end; ++r, x += channels) add(count);
    }
    for (int64_t j = 0; j < count; ++j) {
      a.first[first + j] = origin[j];
      a.sum[first + j] = sum[j];
      a.squares[first + j] = squares[j];
    }
  });
}

template <class T, bool kRelu, bool kResidual>
void batch_norm_as(const BatchNormArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t channels = a.channels;
  const float* __restrict mean = a.mean;
  const float* __restrict scale = a.scale;
  const float* __restrict bias = a.bias;
  for (int64_t r = begin; r < end; ++r) {
    const T* __restrict x = a.x + r * channels;
    const T* __restrict residual = kResidual ? a.residual + r * channels : nullptr;
    T* __restrict y = a.y + r * channels;
#pragma omp simd
    for (int64_t j = 0; j < channels; ++j) {
      float v = (to_float(x[j]) - mean[j]) * scale[j] + bias[j];
      if (kResidual) v += to_float(residual[j]);
      if (kRelu) v = v < 0 ? 0.0f : v;  // a NaN passes through
      y[j] = from_float<T>(v);
    }
  }
}

template <class T>
void batch_norm(const BatchNormArgs<T>& a, int64_t begin, int64_t end) {
  if (a.residual != nullptr) {
    a.relu ? batch_norm_as<T, true, true>(a, begin, end)
           : batch_norm_as<T, false, true>(a, begin, end);
  } else {
    a.relu ? batch_norm_as<T, true, false>(a, begin, end)
           : batch_norm_as<T, false, false>(a, begin, end);
  }
}

enum class Mask { kNone, kFromY, kFromX };

// Calls body.operator()<Mask>() with the mask as a template argument.
template <class T, class Body>
inline void with_mask(const BatchNormMask<T>& mask, const Body& body) {
  if (!mask.relu) return body.template operator()<Mask::kNone>();
  if (mask.y != nullptr) return body.template operator()<Mask::kFromY>();
  body.template operator()<Mask::kFromX>();
}

// Returns g of one element; `v` is the forward pass's value before the ReLU, `y` the one after it.
template <Mask kMask>
inline float masked(float d_y, float v, float y) {
  if (kMask == Mask::kNone) return d_y;
  return (kMask == Mask::kFromY ? y : v) > 0 ? d_y : 0.0f;
}

template <class T, Mask kMask, bool kWritesG>
void backward_sums_as(const BatchNormBackwardSumsArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t channels = a.channels;
  for_strips(channels, [&](int64_t first, int64_t count) {
    alignas(64) float sum[kStrip] = {}, product[kStrip] = {};
    const float* __restrict mean = a.mean + first;
    const float* __restrict scale = a.scale + first;
    const float* __restrict bias = a.bias + first;
    int64_t at = begin * channels + first;
    auto add = [&](int64_t n) {
      const T* __restrict x = a.x + at;
      const T* __restrict d_y = a.mask.d_y + at;
      const T* __restrict y = kMask == Mask::kFromY ? a.mask.y + at : nullptr;
      T* __restrict out = kWritesG ? a.g + at : nullptr;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) {
        const float distance = to_float(x[j]) - mean[j];
        const float v = kMask == Mask::kFromX ? distance * scale[j] + bias[j] : 0.0f;
        const float g =
            masked<kMask>(to_float(d_y[j]), v, kMask == Mask::kFromY ? to_float(y[j]) : 0.0f);
        if (kWritesG) out[j] = from_float<T>(g);
        sum[j] += g;
        product[j] += g * distance;
      }
    };
    if (count == kStrip) {
      for (int64_t r = begin; r < end; ++r, at += channels) add(kStrip);
    } else {
      for (int64_t r = begin; r < end; ++r, at += channels) add(count);
    }
    for (int64_t j = 0; j < count; ++j) {
      a.sum[first + j] = sum[j];
      a.product[first + j] = product[j];
    }
  });
}

template <class T>
void batch_norm_backward_sums(const BatchNormBackwardSumsArgs<T>& a, int64_t begin, int64_t end) {
  with_mask(a.mask, [&]<Mask kMask>() {
    a.g != nullptr ? backward_sums_as<T, kMask, true>(a, begin, end)
                   : backward_sums_as<T, kMask, false>(a, begin, end);
  });
}

template <class T, Mask kMask>
void backward_as(const BatchNormBackwardArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t channels = a.channels;
  const float* __restrict mean = a.mean;
  const float* __restrict scale = a.scale;
  const float* __restrict bias = a.bias;
  const float* __restrict slope = a.slope;
  const float* __restrict offset = a.offset;
  for (int64_t r = begin; r < end; ++r) {
    const T* __restrict x = a.x + r * channels;
    const T* __restrict d_y = a.mask.d_y + r * channels;
    const T* __restrict y = kMask == Mask::kFromY ? a.mask.y + r * channels : nullptr;
    T* __restrict d_x = a.d_x + r * channels;
#pragma omp simd
    for (int64_t j = 0; j < channels; ++j) {
      const float distance = to_float(x[j]) - mean[j];
      const float v = kMask == Mask::kFromX ? distance * scale[j] + bias[j] : 0.0f;
      const float g =
          masked<kMask>(to_float(d_y[j]), v, kMask == Mask::kFromY ? to_float(y[j]) : 0.0f);
      d_x[j] = from_float<T>(scale[j] * g + slope[j] * distance + offset[j]);
    }
  }
}

template <class T>
void batch_norm_backward(const BatchNormBackwardArgs<T>& a, int64_t begin, int64_t end) {
  with_mask(a.mask, [&]<Mask kMask>() { backward_as<T, kMask>(a, begin, end); });
}

template <class T>
void move_taps(const MoveTapsArgs<T>& a, int64_t begin, int64_t end) {
  for (int64_t o = begin; o < end; ++o) {
    const T* __restrict from = a.from + o * a.inputs * a.taps;
    T* __restrict to = a.to + o * a.inputs * a.taps;
    for (int64_t t = 0; t < a.taps; ++t) {
      for (int64_t i = 0; i < a.inputs; ++i) to[t * a.inputs + i] = from[i * a.taps + t];
    }
  }
}

template <class T>
void add_taps(const AddTapsArgs<T>& a, int64_t begin, int64_t end) {
  for (int64_t o = begin; o < end; ++o) {
    const T* __restrict from = a.from + o * a.inputs * a.taps;
    float* __restrict to = a.to + o * a.inputs * a.taps;
    for (int64_t i = 0; i < a.inputs; ++i) {
      for (int64_t t = 0; t < a.taps; ++t) {
        to[i * a.taps + t] += to_float(from[t * a.inputs + i]);
      }
    }
  }
}

template <class T>
void fill_typed(TypedKernels<T>& table) {
  table.batch_norm_sums = batch_norm_sums<T>;
  table.batch_norm = batch_norm<T>;
  table.batch_norm_backward_sums = batch_norm_backward_sums<T>;
  table.batch_norm_backward = batch_norm_backward<T>;
  table.move_taps = move_taps<T>;
  table.add_taps = add_taps<T>;
}

}  // namespace

void fill_batch_norm(Kernels& table) {
  fill_typed(table.fp32);
  fill_typed(table.bf16);
  fill_typed(table.fp16);
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
