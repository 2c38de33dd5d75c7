// Sums several arrays, element by element: so the ranks of one machine add up their gradients.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

// Elements of a block; it fits the L1 cache together with the inputs' parts.
constexpr int64_t kBlock = 512;

template <class T>
struct Wide {  // the type of sums of T
  using Type = T;
};
template <>
struct Wide<Bf16> {
  using Type = float;
};
template <>
struct Wide<Fp16> {
  using Type = float;
};

template <class T>
typename Wide<T>::Type widen(T x) {
  return x;
}
float widen(Bf16 x) { return to_float(x); }
float widen(Fp16 x) { return to_float(x); }

template <class T>
T narrow(typename Wide<T>::Type x) {
  return static_cast<T>(x);
}
template <>
Bf16 narrow<Bf16>(float x) {
  return to_bf16(x);
}
template <>
Fp16 narrow<Fp16>(float x) {
  return to_fp16(x);
}

// Rounds as to_bf16() does; the result is in the upper half.
inline uint32_t rounded_bits(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : rounded;
}

// int64_t wraps around, as in tensors.
inline float sum_of(float a, float b) { return a + b; }
inline double sum_of(double a, double b) { return a + b; }
inline int64_t sum_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// out = narrow(a + b), after widening both to the type of sums. `out` may be a or b.
template <class T, class A, class B>
void add(const A* a, const B* b, T* out, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = narrow<T>(sum_of(widen(a[i]), widen(b[i])));
}

// Adds two numbers at a time, in the halves of a word: without the shuffles between 16 and 32 bits
// this is twice as fast.
template <>
void add(const Bf16* a, const Bf16* b, Bf16* out, int64_t n) {
  typedef uint32_t __attribute__((may_alias, aligned(alignof(Bf16)))) Pair;
  const Pair* first = reinterpret_cast<const Pair*>(a);
  const Pair* second = reinterpret_cast<const Pair*>(b);
  Pair* sums = reinterpret_cast<Pair*>(out);
  constexpr uint32_t kHigh = 0xffff0000u;
  auto as_float = [](uint32_t bits) { return __builtin_bit_cast(float, bits); };
#pragma omp simd
  for (int64_t i = 0; i < n / 2; ++i) {
    const float low = as_float(first[i] << 16) + as_float(second[i] << 16);
    const float high = as_float(first[i] & kHigh) + as_float(second[i] & kHigh);
    sums[i] = rounded_bits(low) >> 16 | (rounded_bits(high) & kHigh);
  }
  if (n % 2 != 0) out[n - 1] = to_bf16(to_float(a[n - 1]) + to_float(b[n - 1]));
}

// The largest power of two below `count`: how many inputs are added before the others.
inline int64_t first_half(int64_t count) {
  int64_t out = 1;
  while (2 * out < count) out *= 2;
  return out;
}

// Where the partial sums of one block of 512 elements lie, by how many times the inputs were
// halved.
template <class T>
struct SumSpace {
  using Sum = typename Wide<T>::Type;
  static constexpr int kHalvings = 16;  // of 65,536 inputs
  alignas(64) Sum sums[kHalvings][kBlock];
};

// Adds the inputs [from, from + count), two or more, elements [begin, begin + size), in pairs.
template <class T, class Out>
void add_halves(const void* const* inputs, int64_t from, int64_t count, int64_t begin, int64_t size,
                Out* out, SumSpace<T>& space, int depth) {
  auto input = [&](int64_t i) { return static_cast<const T*>(inputs[i]) + begin; };
  if (count == 2) return add<Out>(input(from), input(from + 1), out, size);
  const int64_t first = first_half(count), rest = count - first;
  auto* left = space.sums[depth];
  add_halves<T>(inputs, from, first, begin, size, left, space, depth + 1);
  if (rest == 1) return add<Out>(left, input(from + first), out, size);
  auto* right = space.sums[depth + 1];
  add_halves<T>(inputs, from + first, rest, begin, size, right, space, depth + 2);
  add<Out>(left, right, out, size);
}

template <class T>
void sum(const void* const* inputs, int64_t count, void* out, int64_t n) {
  auto input = [&](int64_t i) { return static_cast<const T*>(inputs[i]); };
  T* to = static_cast<T*>(out);
  if (count == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = input(0)[i];
    return;
  }
  if (count == 2) return add<T>(input(0), input(1), to, n);
  SumSpace<T> space;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    add_halves<T>(inputs, 0, count, begin, smaller(kBlock, n - begin), to + begin, space, 0);
  }
}

}  // namespace

void fill_sum(Kernels& table) {
  table.sum = {sum<float>, sum<double>, sum<Fp16>, sum<Bf16>, sum<int64_t>};
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
