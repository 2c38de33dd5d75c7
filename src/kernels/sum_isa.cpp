// Sums of several arrays, element by element: what the ranks of one machine do with each other's
// gradients.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

// Fits the first-level cache with the inputs' parts.
constexpr int64_t kBlock = 512;

template <class T>
struct Wide {  // what sums of T are kept in
  using Type = T;
};
template <>
struct Wide<Bf16> {
  using Type = float;
};
template <>
struct Wide<_Float16> {
  using Type = float;
};

template <class T>
typename Wide<T>::Type widen(T x) {
  return x;
}
float widen(Bf16 x) { return to_float(x); }

template <class T>
T narrow(typename Wide<T>::Type x) {
  return static_cast<T>(x);
}
template <>
Bf16 narrow<Bf16>(float x) {
  return to_bf16(x);
}

// int64_t wraps around, as tensors do.
inline float sum_of(float a, float b) { return a + b; }
inline double sum_of(double a, double b) { return a + b; }
inline int64_t sum_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class T>
void sum_two(const T* a, const T* b, T* out, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = narrow<T>(sum_of(widen(a[i]), widen(b[i])));
}

template <class T>
void sum(const void* const* inputs, int64_t count, void* out, int64_t n) {
  T* to = static_cast<T*>(out);
  if (count == 2) {
    sum_two(static_cast<const T*>(inputs[0]), static_cast<const T*>(inputs[1]), to, n);
    return;
  }
  alignas(64) typename Wide<T>::Type sums[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t size = smaller(kBlock, n - begin);
    const T* first = static_cast<const T*>(inputs[0]) + begin;
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) sums[i] = widen(first[i]);
    for (int64_t input = 1; input < count; ++input) {
      const T* next = static_cast<const T*>(inputs[input]) + begin;
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) sums[i] = sum_of(sums[i], widen(next[i]));
    }
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) to[begin + i] = narrow<T>(sums[i]);
  }
}

}  // namespace

void fill_sum(Kernels& table) {
  table.sum = {sum<float>, sum<double>, sum<_Float16>, sum<Bf16>, sum<int64_t>};
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
