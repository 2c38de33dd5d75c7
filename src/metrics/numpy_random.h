// The random numbers of numpy.random.default_rng(seed), bit for bit: PCG64 (O'Neill 2014, XSL RR
// 128/64) whose state a SeedSequence (O'Neill's seed_seq_fe) makes of the seed.
#pragma once

#include <cstdint>

namespace lockstep {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint64_t seed);

  uint64_t next64();
  uint32_t next32();  // the lower half of next64(), then the upper one

  // As Generator.integers(0, n) and choice(n) for 64-bit results: uniform in [0, n), 0 < n < 2^32
  // (Lemire's rejection).
  uint32_t below(uint32_t n);

 private:
  __extension__ using Wide = unsigned __int128;
  void step();

  Wide state_ = 0, increment_ = 0;
  uint32_t upper_half_ = 0;
  bool has_upper_half_ = false;
};

// As Generator.integers(2, size=..., dtype=bool): 32 coins out of each next32(), lowest bit first.
class NumpyCoins {
 public:
  explicit NumpyCoins(NumpyRandom& random) : random_(random) {}
  bool next() {
    if (left_ == 0) {
      bits_ = random_.next32();
      left_ = 32;
    }
    --left_;
    bool coin = (bits_ & 1) != 0;
    bits_ >>= 1;
    return coin;
  }

 private:
  NumpyRandom& random_;
  uint32_t bits_ = 0;
  int left_ = 0;
};

}  // namespace lockstep
