// A sequence of random numbers from a key: the n-th number is a function of (key, n).
#pragma once

#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace lockstep {

class KeyedRandom {
 public:
  explicit KeyedRandom(uint64_t key) : key_(key) {}

  // Returns a number in [0, 1) with 53 random bits.
  double uniform() { return static_cast<double>(combine_keys(key_, counter_++) >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Returns a number in [0, n), n > 0.
  int64_t below(int64_t n) {
    return static_cast<int64_t>(random_below(key_, counter_++, static_cast<uint64_t>(n)));
  }
  bool chance(double probability) { return uniform() < probability; }

  double normal() {  // Box and Muller 1958; one of their two values
    double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

  // Returns a sample of Gamma(shape, 1), shape > 0: Marsaglia and Tsang 2000, with their extra step
  // for shapes below 1.
  double gamma(double shape) {
    if (shape < 1) {
      double factor = std::pow(1 - uniform(), 1 / shape);
      return gamma(shape + 1) * factor;
    }
    double d = shape - 1.0 / 3.0, c = 1 / std::sqrt(9 * d);
    while (true) {
      double x = normal(), v = 1 + c * x;
      v = v * v * v;
      if (v > 0 && std::log(1 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) {
        return d * v;
      }
    }
  }

  double beta(double a, double b) {
    double x = gamma(a), y = gamma(b);
    return x + y > 0 ? x / (x + y) : 0.5;  // 0.5: both underflowed
  }

 private:
  uint64_t key_, counter_ = 0;
};

}  // namespace lockstep
