// Random numbers as pure functions of a key and a counter. Without a state, data order and dropout
// are the same for any number of threads and ranks and after a resume.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep {

// A bijection of 64-bit numbers that scatters neighbouring inputs (the finalizer of SplitMix64:
// Steele, Lea, Flood 2014, variant 13 of Stafford).
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Makes one key of two numbers; the order matters.
constexpr uint64_t combine_keys(uint64_t a, uint64_t b) {
  return mix64(mix64(a + 0x9e3779b97f4a7c15ULL) + b);
}

// Returns a number that is uniform in [0, n), n > 0, for this key and counter (Lemire's
// multiplication; the bias is below 2^-32 for n below 2^32).
constexpr uint64_t random_below(uint64_t key, uint64_t counter, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(combine_keys(key, counter)) * n) >>
                               64);
}

// Fisher-Yates shuffle with random_below().
template <typename T>
void shuffle_with_key(std::vector<T>& items, uint64_t key) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random_below(key, i, i)]);
  }
}

}  // namespace lockstep
