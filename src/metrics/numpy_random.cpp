#include "metrics/numpy_random.h"

#include <array>

namespace lockstep {

namespace {

// Computes numpy.random.SeedSequence(seed).generate_state(4): eight 32-bit words, the lower half of
// each 64-bit word first.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t seed) {
    std::array<uint32_t, 4> entropy{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    for (std::size_t i = 0; i < pool_.size(); ++i) pool_[i] = hash(entropy[i]);
    for (std::size_t from = 0; from < pool_.size(); ++from) {
      for (std::size_t to = 0; to < pool_.size(); ++to) {
        if (from != to) pool_[to] = mix(pool_[to], hash(pool_[from]));
      }
    }
  }

  std::array<uint64_t, 4> state() const {
    std::array<uint64_t, 4> out{};
    uint32_t constant = 0x8b51f9dd;
    for (uint32_t i = 0; i < 8; ++i) {
      uint32_t word = pool_[i % 4] ^ constant;
      constant *= 0x58f38ded;
      word *= constant;
      word ^= word >> 16;
      out[i / 2] |= static_cast<uint64_t>(word) << (32 * (i % 2));
    }
    return out;
  }

 private:
  uint32_t hash(uint32_t value) {
    value ^= constant_;
    constant_ *= 0x931e8875;
    value *= constant_;
    return value ^ (value >> 16);
  }
  static uint32_t mix(uint32_t a, uint32_t b) {
    uint32_t out = 0xca01f9dd * a - 0x4973f715 * b;
    return out ^ (out >> 16);
  }

  uint32_t constant_ = 0x43b0d7e5;
  std::array<uint32_t, 4> pool_{};
};

}  // namespace

NumpyRandom::NumpyRandom(uint64_t seed) {
  std::array<uint64_t, 4> words = SeedSequence(seed).state();
  increment_ = (Wide{words[2]} << 64 | words[3]) << 1 | 1;
  step();
  state_ += Wide{words[0]} << 64 | words[1];
  step();
}

void NumpyRandom::step() {
  constexpr Wide kMultiplier = Wide{0x2360ED051FC65DA4} << 64 | 0x4385DF649FCCF645;
  state_ = state_ * kMultiplier + increment_;
}

uint64_t NumpyRandom::next64() {
  step();
  auto turn = static_cast<unsigned>(state_ >> 122);
  uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  return folded >> turn | folded << ((64 - turn) & 63);
}

uint32_t NumpyRandom::next32() {
  has_upper_half_ = !has_upper_half_;
  if (!has_upper_half_) return upper_half_;
  uint64_t both = next64();
  upper_half_ = static_cast<uint32_t>(both >> 32);
  return static_cast<uint32_t>(both);
}

uint32_t NumpyRandom::below(uint32_t n) {
  if (n == 1) return 0;  // numpy draws nothing in this case
  uint64_t product = uint64_t{next32()} * n;
  if (static_cast<uint32_t>(product) < n) {
    uint32_t threshold = (UINT32_MAX - (n - 1)) % n;
    while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next32()} * n;
  }
  return static_cast<uint32_t>(product >> 32);
}

}  // namespace lockstep
