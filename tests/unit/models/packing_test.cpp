#include "models/packing.h"

#include <gtest/gtest.h>

#include "decode/positions.h"
#include "nn/embedding.h"
#include "support/tiny_transformer.h"

namespace lockstep {
namespace {

// lockstep-translate computes the positions that training took from libtorch.
TEST(PositionTable, HasTheNumbersOfTraining) {
  for (const char* name : {"interleaved", "halves", "paper_halves"}) {
    const PositionLayout layout = position_layout(name);
    for (int64_t width : {24, 512}) {
      constexpr int64_t kFirst = 2;
      const torch::Tensor want =
          sinusoidal_positions(kFirst + 700, width, torch::kCPU, layout).slice(0, kFirst);
      const PositionTable table(width, layout, kFirst);
      table.rows(3);
      const PositionRows rows = table.rows(700);
      const torch::Tensor got =
          torch::from_blob(const_cast<float*>(rows.get()), {700, width}, torch::kFloat);
      // Both round numbers of double to fp32; the double ones may differ in their last bit.
      EXPECT_LT((got - want).abs().max().item<float>(), 6e-8) << width;
      EXPECT_LT((got != want).sum().item<int64_t>(), 5) << width;
    }
  }
}

TEST(PackTransformer, CountsTheBytesOfAllMatrices) {
  const TinyTransformer tiny;
  const PackedTransformer packed = pack_transformer(tiny.model, WeightFormat::kFp32);
  EXPECT_EQ(packed.encoder.size(), 2u);
  EXPECT_EQ(packed.decoder.size(), 2u);
  EXPECT_EQ(packed.output.outputs(), 23);
  int64_t matrices = 0;
  for (const ParameterRef& p : tiny.parameters.list()) {
    if (p->shape.size() == 2) matrices += 4 * p->shape[0] * p->shape[1];
  }
  EXPECT_GE(packed.bytes(), matrices);
}

}  // namespace
}  // namespace lockstep
