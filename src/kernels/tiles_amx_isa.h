// Wraps the tile products of Intel's AMX: TDPBF16PS adds to c [16, 16] fp32 the product of
// a [16, 32] and b [32, 16], both bf16, where row q of b's tile holds the pairs
// (b[2q, j], b[2q + 1, j]).
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

// GCC's own macro for loading a tile does not tell the compiler that it reads memory.
#define LOCKSTEP_LOAD_TILE(tile, from, row_bytes)                                          \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"(int64_t{row_bytes}) \
                   : "memory")
#define LOCKSTEP_STORE_TILE(tile, to) \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"(int64_t{64}) : "memory")
#define LOCKSTEP_MULTIPLY_TILES(c, a, b) \
  __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
#define LOCKSTEP_ZERO_TILE(tile) __asm__ volatile("tilezero %%tmm" #tile ::)

// Configures all eight tiles at full size for as long as the object lives. Every
// thread has its own tiles.
class Tiles {
 public:
  Tiles() {
    alignas(64) uint8_t config[64] = {};
    config[0] = 1;  // the palette
    for (int i = 0; i < 8; ++i) {
      config[16 + 2 * i] = 64;  // bytes of a row
      config[48 + i] = 16;      // rows
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  ~Tiles() { __asm__ volatile("tilerelease" ::); }
};

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
