#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/sha256_block.h"

namespace lockstep {
namespace {

TEST(Sha256Block, InstructionsGiveWhatPortableCodeGives) {
  if (!detail::sha256_has_instructions()) GTEST_SKIP() << "this CPU has no SHA instructions";
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    uint32_t state[8], same[8];
    for (int j = 0; j < 8; ++j) state[j] = same[j] = random();
    std::vector<unsigned char> block(64);
    for (unsigned char& byte : block) byte = static_cast<unsigned char>(random());
    detail::sha256_block_portable(state, block.data());
    detail::sha256_block_instructions(same, block.data());
    for (int j = 0; j < 8; ++j) ASSERT_EQ(state[j], same[j]) << i << " word " << j;
  }
}

}  // namespace
}  // namespace lockstep
