#include "decode/packed_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "decode/threads.h"

namespace lockstep {
namespace {

constexpr int64_t kWidth = 16, kPieces = 3;

// A network without layers whose table is that of its output, as an edge folder has it; the row of
// piece 2 is infinite.
struct TableOnly {
  OneThread thread;
  std::vector<float> table = std::vector<float>(kPieces * kWidth, 0.5f);
  std::vector<float> ones = std::vector<float>(kWidth, 1), zeros = std::vector<float>(kWidth, 0);
  PackedTransformer model;

  TableOnly() {
    std::fill(table.begin() + 2 * kWidth, table.end(), std::numeric_limits<float>::infinity());
    model.shape.d_model = kWidth;
    model.shape.heads = 1;
    model.shape.pieces = kPieces;
    model.output =
        PackedLinear({table.data(), nullptr, kPieces, kWidth}, WeightFormat::kFp32, thread);
    const auto positions = std::make_shared<PositionTable>(kWidth, PositionLayout::kInterleaved);
    model.positions = [positions](int64_t count) { return positions->rows(count); };
  }
  PackedNorm norm() const { return {ones.data(), zeros.data()}; }
};

// The rows of a step lie where those of the step before lay.
TEST(PackedBlocks, TheZeroTokenIsZeroWhateverWasThere) {
  const TableOnly network;
  PackedBlocks<float> blocks(network.model, network.thread);
  blocks.begin({2}, {0}, 1, network.norm(), network.model.decoder_table());
  blocks.begin({kZeroToken}, {0}, 1, network.norm(), network.model.decoder_table());
  for (int64_t j = 0; j < kWidth; ++j) {
    // The position alone, 0 1 0 1 ..., normalised.
    EXPECT_NEAR(blocks.normed()[j], j % 2 == 0 ? -1 : 1, 1e-4);
  }
}

}  // namespace
}  // namespace lockstep
