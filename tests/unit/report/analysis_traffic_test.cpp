#include "report/answers/analysis_traffic.h"

#include <gtest/gtest.h>

#include "dist/account/exchange_model.h"
#include "report/answers/analysis_flops.h"

namespace lockstep {
namespace {

// docs/report.md#an-example-question-11-for-two-published-runs: the published figures and what
// follows from them.
TEST(AnalysisTraffic, TheExampleOfTheDocumentHolds) {
  const double gradients = 60'880'896 * 4.0;
  EXPECT_NEAR(gradients * 1e-6, 243.5, 0.05);
  EXPECT_NEAR(exchange_bytes(gradients, 4) * 1e-6, 365.3, 0.05);
  const double measured = 17.3e9 / 300 * 1.28;
  EXPECT_NEAR(measured * 1e-6, 73.8, 0.05);
  EXPECT_NEAR(measured / exchange_bytes(gradients, 4), 0.202, 0.001);
  EXPECT_NEAR(exchange_bytes(gradients, 4) / 1.28 * 1e-6, 285, 0.5);
  EXPECT_NEAR(exchange_bytes(gradients / 2, 2) / 125e6, 0.974, 0.001);  // R0, fp16
  EXPECT_NEAR(exchange_bytes(gradients, 2) / 125e6, 1.948, 0.001);      // R0, fp32
}

TEST(AnalysisTraffic, KnownHiddenCommunicationMakesBoundsNarrow) {
  // 1 s, of which 0.4 wait for the exchange; 0.2 more of it are hidden.
  const auto rows = what_if(1.0, 0.4, 0.2, false);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_DOUBLE_EQ(rows[0].low, 1 / 0.6);
  EXPECT_DOUBLE_EQ(rows[0].high, 1 / 0.6);
  EXPECT_DOUBLE_EQ(rows[1].low, 1 / 0.8) << "half of what is waited for";
  EXPECT_DOUBLE_EQ(rows[1].high, 1 / 0.7) << "an exchange of 0.3 s, 0.2 of them hidden";
  EXPECT_DOUBLE_EQ(rows[2].high, rows[1].high);
  EXPECT_DOUBLE_EQ(rows[3].high, 2 / 1.6);
  EXPECT_DOUBLE_EQ(what_if(1.0, 0.2, 0.6, false)[1].high, 1 / 0.8) << "no more than all";
  EXPECT_EQ(what_if(1.0, 0.4, 0.2, true).size(), 4u) << "it has bf16 on the wire";
}

// He et al. 2016, table 1, counts 1.8e9 multiply-adds for ResNet-18 at 224 x 224; its first
// convolution alone has 118e6.
TEST(AnalysisFlops, AConvolutionCountsThePixelsOfItsStage) {
  const NamedShapes stem = {{"conv1.weight", {64, 3, 7, 7}},
                            {"layer1.0.conv1.weight", {64, 64, 3, 3}}};
  const auto out = count_flops(stem, {.items = 1, .pixels = 224});
  ASSERT_TRUE(out.has_value());
  const double expected = 2 * (64.0 * 3 * 49 * 112 * 112 + 64.0 * 64 * 9 * 56 * 56);
  EXPECT_DOUBLE_EQ(out->flops, 3 * expected);
}

TEST(AnalysisFlops, ATranslationCountsBothSides) {
  const NamedShapes weights = {{"embedding.weight", {10, 4}},
                               {"encoder.0.attention.qkv.weight", {12, 4}},
                               {"decoder.0.cross.memory.weight", {8, 4}},
                               {"decoder.0.cross.query.weight", {4, 4}},
                               {"decoder.0.norm1.weight", {4}}};
  const auto out = count_flops(weights, {.targets = 7, .sources = 5, .items = 1});
  ASSERT_TRUE(out.has_value());
  EXPECT_DOUBLE_EQ(out->flops, 6 * ((48 + 32) * 5.0 + (16 + 40) * 7.0));
}

TEST(AnalysisFlops, UnknownWorkIsNotCounted) {
  EXPECT_FALSE(count_flops({{"layer1.0.conv1.weight", {64, 64, 3, 3}}}, {.items = 8}).has_value());
  EXPECT_FALSE(count_flops({}, {.targets = 8, .items = 8}).has_value());
}

}  // namespace
}  // namespace lockstep
