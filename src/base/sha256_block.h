// The compression function of SHA-256 (FIPS 180-4, section 6.2.2), in portable code and with the
// instructions that x86 CPUs have for it, six times as fast. Sha256 (file.h) takes what the CPU
// has.
#pragma once

#include <cstdint>

namespace lockstep::detail {

// state: 8 words, updated; p: one block of 64 bytes.
void sha256_block_portable(uint32_t* state, const unsigned char* p);

bool sha256_has_instructions();
// REQUIRES sha256_has_instructions().
void sha256_block_instructions(uint32_t* state, const unsigned char* p);

}  // namespace lockstep::detail
