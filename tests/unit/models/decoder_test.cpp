#include "models/decoder.h"

#include <gtest/gtest.h>

#include "models/candidates.h"
#include "models/packing.h"
#include "support/tiny_transformer.h"

namespace lockstep {
namespace {

using torch::Tensor;

// The logits of forward() for the last token of every target, one sentence at a time.
Tensor last_logits(const Transformer& model, const std::vector<std::vector<int32_t>>& sources,
                   const std::vector<std::vector<int32_t>>& targets, const Numerics& numerics) {
  torch::NoGradGuard no_grad;
  ForwardContext context;
  context.numerics = numerics;
  std::vector<Tensor> rows;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Tensor hidden = model.forward(translation_input({sources[i]}, {targets[i]}), context);
    rows.push_back(model.logits(hidden, numerics)[-1].to(at::kFloat));
  }
  return torch::stack(rows);
}

std::vector<int64_t> column(const std::vector<std::vector<int32_t>>& targets) {
  std::vector<int64_t> newest;
  for (const auto& target : targets) newest.push_back(target.back());
  return newest;
}

// Logits [rows, pieces] after a step.
Tensor stepped(Decoder& decoder, const std::vector<int64_t>& tokens) {
  decoder.step(tokens);
  return torch::tensor(decoder.logits()).view({std::ssize(tokens), -1});
}

class DecoderTest : public ::testing::TestWithParam<bool> {
 protected:
  // GetParam(): with packed weights, else with the operations of training.
  static WeightFormat format_of(at::ScalarType compute) {
    return compute == at::kFloat ? WeightFormat::kFp32 : WeightFormat::kBf16;
  }
  struct Both {
    Both(const TinyTransformer& tiny, const std::vector<std::vector<int32_t>>& sources,
         at::ScalarType compute, bool use_packed)
        : numerics{compute, false}, packed(pack_transformer(tiny.model, format_of(compute))) {
      decoder = decoding_model(tiny.model, numerics, use_packed ? &packed : nullptr).start(sources);
    }
    Numerics numerics;
    PackedTransformer packed;
    std::unique_ptr<Decoder> decoder;
  };
};

TEST_P(DecoderTest, EqualsForwardOnThePrefixAtEveryStep) {
  TinyTransformer tiny;
  const auto sources = random_sentences({5, 1, 9, 40}, 23);
  const Both both(tiny, sources, at::kFloat, GetParam());
  Decoder& state = *both.decoder;
  const auto whole = random_sentences({36, 36, 36, 36}, 23, 11);  // beyond a block of the cache
  std::vector<std::vector<int32_t>> prefix(4);
  for (std::size_t t = 0; t < 36; ++t) {
    for (std::size_t i = 0; i < 4; ++i) prefix[i].push_back(whole[i][t]);
    const Tensor got = stepped(state, column(prefix));
    if (t > 5 && t < 30) continue;  // the reference is slow
    const Tensor want = last_logits(tiny.model, sources, prefix, both.numerics);
    // fp32; sums of another order and products of another height.
    ASSERT_LT((got - want).abs().max().item<float>(), 1e-4) << "step " << t;
  }
}

TEST_P(DecoderTest, EqualsForwardInEveryVariant) {
  for (const char* variant : {"post", "gelu", "silu", "no bias", "halves", "zero", "published"}) {
    SCOPED_TRACE(variant);
    const std::string name = variant;
    TransformerConfig config = TinyTransformer::tiny_config();
    if (name == "post") config.norm = "post";
    if (name == "gelu") config.activation = "gelu";
    if (name == "silu") config.activation = "silu";
    if (name == "published") {
      config.positions = "paper_halves";
      config.variant = {.scale_embedding = false,
                        .own_source_table = true,
                        .own_output_table = true,
                        .output_bias = true,
                        .first_position = 2,
                        .source_pieces = 23};
    }
    if (name == "halves") config.positions = "halves";
    if (name == "zero") config.start = "zero";
    config.attention_bias = name != "no bias";
    TinyTransformer tiny(config);
    const auto sources = random_sentences({5, 1, 9}, 23);
    const Both both(tiny, sources, at::kFloat, GetParam());
    Decoder& state = *both.decoder;
    std::vector<std::vector<int32_t>> prefix(3), inputs(3);
    if (config.starts_with_zero()) inputs.assign(3, {static_cast<int32_t>(kZeroToken)});
    for (int32_t t = 0; t < 5; ++t) {
      for (auto* rows : {&prefix, &inputs}) {
        for (auto& row : *rows) row.push_back(t == 0 ? 2 : 4 + (t * 5) % 19);
      }
      const Tensor got = stepped(state, column(prefix));
      const Tensor want = last_logits(tiny.model, sources, inputs, both.numerics);
      ASSERT_LT((got - want).abs().max().item<float>(), 1e-4) << "step " << t;
    }
  }
}

TEST_P(DecoderTest, FollowsWidenedReorderedAndDroppedRows) {
  TinyTransformer tiny;
  auto sources = random_sentences({5, 3, 9}, 23);
  std::vector<std::vector<int32_t>> row_sources = sources, prefix(3);
  const Both both(tiny, sources, at::kFloat, GetParam());
  Decoder& state = *both.decoder;
  int32_t next = 4;
  auto step_and_compare = [&] {
    for (auto& target : prefix) target.push_back(4 + (next++ * 7) % 19);
    const Tensor got = stepped(state, column(prefix));
    const Tensor want = last_logits(tiny.model, row_sources, prefix, both.numerics);
    EXPECT_LT((got - want).abs().max().item<float>(), 1e-4) << "length " << prefix[0].size();
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

TEST_P(DecoderTest, DecodesInBfloat16AsForwardDoes) {
  TinyTransformer tiny;
  const auto sources = random_sentences({5, 12}, 23);
  const Both both(tiny, sources, at::kBFloat16, GetParam());
  Decoder& state = *both.decoder;
  std::vector<std::vector<int32_t>> prefix = random_sentences({1, 1}, 23);
  for (int t = 0; t < 6; ++t) {
    const Tensor got = stepped(state, column(prefix));
    const Tensor want = last_logits(tiny.model, sources, prefix, both.numerics);
    // Values of about 1 with 8 bits, rounded at every layer on both sides.
    EXPECT_LT((got - want).abs().max().item<float>(), 0.1);
    for (auto& target : prefix) target.push_back(4 + t);
  }
}

TEST_P(DecoderTest, GivesTheBestOfItsLogits) {
  TinyTransformer tiny;
  const Both both(tiny, random_sentences({5, 2}, 23), at::kFloat, GetParam());
  const Tensor logits = stepped(*both.decoder, {2, 2});
  const Candidates want = best_candidates(logits, 3, {0, 1});
  const Candidates got = both.decoder->best(3, {0, 1});
  EXPECT_EQ(got.id, want.id);
}

TEST(PackedDecoder, WithInt8WeightsIsCloseToFp32) {
  TinyTransformer tiny;
  const auto sources = random_sentences({5, 12, 3}, 23);
  const PackedTransformer whole = pack_transformer(tiny.model, WeightFormat::kFp32);
  const PackedTransformer bytes = pack_transformer(tiny.model, WeightFormat::kInt8);
  EXPECT_LT(bytes.bytes(), whole.bytes());
  const auto exact = decoding_model(tiny.model, {}, &whole).start(sources);
  const auto rounded = decoding_model(tiny.model, {}, &bytes).start(sources);
  for (int64_t token : {2, 7, 9}) {
    const std::vector<int64_t> tokens(3, token);
    const Tensor want = stepped(*exact, tokens), got = stepped(*rounded, tokens);
    // Values of about 1 through 4 layers of products with errors of about 1 in 127 an element.
    const double difference = (got - want).abs().mean().item<double>();
    EXPECT_LT(difference, 0.05);
    EXPECT_GT(difference, 1e-5) << "nothing was rounded";
  }
}

INSTANTIATE_TEST_SUITE_P(BothWays, DecoderTest, testing::Bool(),
                         [](const auto& way) { return way.param ? "Packed" : "Plain"; });

}  // namespace
}  // namespace lockstep
