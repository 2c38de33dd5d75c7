// What the tests of the kernels of GPUs share: their numbers, and comparisons.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "support/row_memory.h"

namespace lockstep {

using detail::gpu_rows::from_float;
using detail::gpu_rows::to_float;

inline const GpuKernels& gpu() { return kernels_under_test(); }
inline const Kernels& cpu() { return *kernels_for("generic"); }

template <class T>
Numbers<T> random_numbers(int64_t count, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  Numbers<T> out(static_cast<std::size_t>(count));
  for (T& x : out) x = from_float<T>(normal(generator));
  return out;
}
template <class T>
Numbers<T> zeros_of(int64_t count) {
  return Numbers<T>(static_cast<std::size_t>(count));
}

// One rounding of the type, besides sums that were added in another order.
template <class T>
float tolerance() {
  return std::is_same_v<T, float> ? 2e-6f : std::is_same_v<T, Bf16> ? 1e-2f : 1.5e-3f;
}

template <class T>
void expect_close(const Numbers<T>& got, const Numbers<T>& want, float near = tolerance<T>()) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float a = to_float(got[i]), b = to_float(want[i]);
    if (std::isnan(b) && std::isnan(a)) continue;
    ASSERT_NEAR(a, b, near * (1 + std::abs(b))) << "element " << i;
  }
}

}  // namespace lockstep
