// Generates the random numbers of numpy.random.default_rng(seed), bit for bit: PCG64 (O'Neill 2014,
// XSL RR 128/64), whose state is derived from the seed by a SeedSequence (O'Neill's seed_seq_fe).
#pragma once

#include <cstdint>

namespace lockstep {

class NumpyRandom {
 public:
  explicit NumpyRandom(uint64_t seed);

  uint64_t next64();
  uint32_t next32();  // the lower half of next64(), then its upper half

  // Works like Generator.integers(0, n) and choice(n) for 64-bit results: uniform in [0, n), 0 < n
  // < 2^32 (Lemire's rejection method).
  uint32_t below(uint32_t n);

 private:
  __extension__ using Wide = unsigned __int128;
  void step();

  Wide state_ = 0, increment_ = 0;
  uint32_t upper_half_ = 0;
  bool has_upper_half_ = false;
};

// Works like Generator.integers(2, size=..., dtype=bool): takes 32 coin tosses from each next32(),
// lowest bit first.
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
