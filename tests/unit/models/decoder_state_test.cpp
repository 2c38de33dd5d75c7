#include "models/decoder_state.h"

#include <gtest/gtest.h>

#include "nn/embedding.h"
#include "support/tiny_transformer.h"

namespace lockstep {
namespace {

using torch::Tensor;

// The outputs of forward() for the last token of every target, one sentence at a time.
Tensor last_outputs(const Transformer& model, const std::vector<std::vector<int32_t>>& sources,
                    const std::vector<std::vector<int32_t>>& targets, const Numerics& numerics) {
  torch::NoGradGuard no_grad;
  ForwardContext context;
  context.numerics = numerics;
  std::vector<Tensor> rows;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    rows.push_back(model.forward(translation_input({sources[i]}, {targets[i]}), context)[-1]);
  }
  return torch::stack(rows);
}

Tensor column(const std::vector<std::vector<int32_t>>& targets) {
  std::vector<int64_t> newest;
  for (const auto& target : targets) newest.push_back(target.back());
  return torch::tensor(newest, torch::kInt64);
}

class DecoderStateTest : public testing::TestWithParam<bool> {
 protected:
  Numerics numerics() const { return {at::kFloat, GetParam()}; }
};

TEST_P(DecoderStateTest, EqualsForwardOnThePrefixAtEveryStep) {
  TinyTransformer tiny;
  const auto sources = random_sentences({5, 1, 9, 40}, 23);
  DecoderState state(tiny.model, sources, numerics());
  const auto whole = random_sentences({36, 36, 36, 36}, 23, 11);  // beyond a block of the cache
  std::vector<std::vector<int32_t>> prefix(4);
  for (std::size_t t = 0; t < 36; ++t) {
    for (std::size_t i = 0; i < 4; ++i) prefix[i].push_back(whole[i][t]);
    const Tensor got = state.step(column(prefix));
    if (t > 5 && t < 30) continue;  // the reference is slow
    const Tensor want = last_outputs(tiny.model, sources, prefix, numerics());
    // fp32; sums of another order and products of another height.
    ASSERT_LT((got - want).abs().max().item<float>(), 1e-4) << "step " << t;
  }
  EXPECT_EQ(state.length(), 36);
}

TEST_P(DecoderStateTest, EqualsForwardInEveryVariant) {
  for (const char* variant : {"post", "gelu", "no bias", "halves", "zero"}) {
    SCOPED_TRACE(variant);
    const std::string name = variant;
    TransformerConfig config = TinyTransformer::tiny_config();
    if (name == "post") config.norm = "post";
    if (name == "gelu") config.activation = "gelu";
    if (name == "halves") config.positions = "halves";
    if (name == "zero") config.start = "zero";
    config.attention_bias = name != "no bias";
    TinyTransformer tiny(config);
    const auto sources = random_sentences({5, 1, 9}, 23);
    DecoderState state(tiny.model, sources, numerics());
    std::vector<std::vector<int32_t>> prefix(3), inputs(3);
    if (config.starts_with_zero()) inputs.assign(3, {static_cast<int32_t>(kZeroToken)});
    for (int32_t t = 0; t < 5; ++t) {
      for (auto* rows : {&prefix, &inputs}) {
        for (auto& row : *rows) row.push_back(t == 0 ? 2 : 4 + (t * 5) % 19);
      }
      const Tensor got = state.step(column(prefix));
      const Tensor want = last_outputs(tiny.model, sources, inputs, numerics());
      ASSERT_LT((got - want).abs().max().item<float>(), 1e-4) << "step " << t;
    }
    EXPECT_EQ(state.length(), 5);
  }
}

TEST_P(DecoderStateTest, FollowsWidenedReorderedAndDroppedRows) {
  TinyTransformer tiny;
  auto sources = random_sentences({5, 3, 9}, 23);
  std::vector<std::vector<int32_t>> row_sources = sources, prefix(3);
  DecoderState state(tiny.model, sources, numerics());
  int32_t next = 4;
  auto step_and_compare = [&] {
    for (auto& target : prefix) target.push_back(4 + (next++ * 7) % 19);
    const Tensor got = state.step(column(prefix));
    const Tensor want = last_outputs(tiny.model, row_sources, prefix, numerics());
    EXPECT_LT((got - want).abs().max().item<float>(), 1e-4) << "length " << state.length();
  };
  auto select = [&](const std::vector<int32_t>& rows) {
    state.select(rows);
    std::vector<std::vector<int32_t>> new_sources, new_prefix;
    for (int32_t row : rows) {
      new_sources.push_back(row_sources[static_cast<std::size_t>(row)]);
      new_prefix.push_back(prefix[static_cast<std::size_t>(row)]);
    }
    row_sources = new_sources;
    prefix = new_prefix;
    EXPECT_EQ(state.rows(), std::ssize(rows));
  };
  step_and_compare();
  select({0, 0, 1, 1, 2, 2});
  step_and_compare();
  step_and_compare();
  select({1, 0, 2, 2, 5, 4});
  step_and_compare();
  select({1, 1, 4, 5});  // the second sentence is done
  step_and_compare();
  step_and_compare();
  select({0, 1, 2, 3});
  step_and_compare();
  select({3, 2});
  step_and_compare();
}

TEST_P(DecoderStateTest, DecodesInBfloat16AsForwardDoes) {
  TinyTransformer tiny;
  const Numerics low{at::kBFloat16, GetParam()};
  const auto sources = random_sentences({5, 12}, 23);
  DecoderState state(tiny.model, sources, low);
  std::vector<std::vector<int32_t>> prefix = random_sentences({1, 1}, 23);
  for (int t = 0; t < 6; ++t) {
    const Tensor got = state.step(column(prefix)).to(at::kFloat);
    const Tensor want = last_outputs(tiny.model, sources, prefix, low).to(at::kFloat);
    // Values of about 1 with 8 bits, rounded at every layer on both sides.
    EXPECT_LT((got - want).abs().max().item<float>(), 0.1);
    for (auto& target : prefix) target.push_back(4 + t);
  }
}

INSTANTIATE_TEST_SUITE_P(BothWays, DecoderStateTest, testing::Bool(),
                         [](const auto& way) { return way.param ? "Fused" : "Plain"; });

}  // namespace
}  // namespace lockstep
