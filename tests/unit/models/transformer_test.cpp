#include "models/transformer.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "models/decoder_state.h"
#include "support/tiny_transformer.h"

namespace lockstep {
namespace {

using torch::Tensor;

ForwardContext plain_context() {
  ForwardContext context;
  context.numerics.fused = false;
  return context;
}

TEST(Transformer, HasTheDocumentedNumberOfWeights) {
  TransformerConfig config;  // d 256, 3 + 3 layers, feed-forward 1024
  Parameters parameters;
  Transformer model(config, 6000, parameters);
  // 6000 * 256 + 3 * (4 * 65536 + 2 * 262144 + 9 * 256 + 1024)
  //   + 3 * (8 * 65536 + 2 * 262144 + 15 * 256 + 1024) + 4 * 256
  EXPECT_EQ(parameters.count(), 7066624);

  TinyTransformer tiny;
  const int64_t d = 24, f = 40;
  EXPECT_EQ(tiny.parameters.count(), 23 * d + 2 * (4 * d * d + 2 * d * f + 9 * d + f) +
                                         2 * (8 * d * d + 2 * d * f + 15 * d + f) + 4 * d);
}

TEST(Transformer, RoundsItsTableUpAndProducesPiecesOnly) {
  TransformerConfig config = TinyTransformer::tiny_config();
  config.vocabulary_multiple = 8;
  TinyTransformer tiny(config, 23);
  EXPECT_EQ(tiny.model.vocabulary(), 24);
  EXPECT_EQ(tiny.model.pieces(), 23);
  torch::NoGradGuard no_grad;
  EXPECT_EQ(tiny.model.logits(torch::ones({2, 24}), {}).sizes(), (std::vector<int64_t>{2, 24}));
  DecoderState decoder(tiny.model, {{5, 6, 3}}, {}, {});
  decoder.step({2});
  EXPECT_EQ(decoder.logits().size(), 23u);
}

TEST(Transformer, HasTheDocumentedNumberOfWeightsInItsVariants) {
  const int64_t d = 24;
  const int64_t usual = TinyTransformer().parameters.count();
  TransformerConfig config = TinyTransformer::tiny_config();
  config.attention_bias = false;  // 2 self-attentions of the encoder, 2 + 2 of the decoder
  EXPECT_EQ(TinyTransformer(config).parameters.count(), usual - 6 * 4 * d);
  config = TinyTransformer::tiny_config();
  config.norm = "post";
  TinyTransformer post(config);
  EXPECT_EQ(post.parameters.count(), usual - 4 * d);
  EXPECT_EQ(post.parameters.find("encoder.norm.weight"), nullptr);
}

TEST(Transformer, NamesItsParametersAsDocumented) {
  TinyTransformer tiny;
  for (const char* name :
       {"embedding.weight", "encoder.0.norm1.weight", "encoder.0.attention.qkv.weight",
        "encoder.1.attention.out.bias", "encoder.1.norm2.bias", "encoder.0.feed_forward.up.weight",
        "encoder.0.feed_forward.down.weight", "encoder.norm.weight",
        "decoder.0.attention.qkv.weight", "decoder.1.cross.query.weight",
        "decoder.1.cross.memory.bias", "decoder.0.cross.out.weight", "decoder.0.norm3.weight",
        "decoder.1.feed_forward.down.bias", "decoder.norm.bias"}) {
    EXPECT_NE(tiny.parameters.find(name), nullptr) << name;
  }
  EXPECT_EQ(tiny.parameters.list().size(), 1u + 2 * 12 + 2 * 20 + 2 * 2);
}

TEST(Transformer, RefusesWidthsThatDoNotFit) {
  TransformerConfig config = TinyTransformer::tiny_config();
  config.heads = 5;
  Parameters parameters;
  EXPECT_THROW(Transformer(config, 10, parameters), ConfigError);
  config.d_model = 15;
  EXPECT_THROW(Transformer(config, 10, parameters), ConfigError);
}

TEST(Transformer, GivesEachSentenceTheSameOutputAloneAndInABatch) {
  for (bool fused : {false, true}) {
    TinyTransformer tiny;
    ForwardContext context;
    context.numerics.fused = fused;
    const auto sources = random_sentences({5, 1, 9, 3}, 23),
               targets = random_sentences({4, 7, 1, 2}, 23);
    torch::NoGradGuard no_grad;
    const Tensor all = tiny.model.forward(translation_input(sources, targets), context);
    int64_t row = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Tensor one = tiny.model.forward(translation_input({sources[i]}, {targets[i]}), context);
      // fp32; matrix products of other heights round differently.
      EXPECT_TRUE(torch::allclose(all.narrow(0, row, one.size(0)), one, 1e-4, 1e-5))
          << "sentence " << i << " fused " << fused;
      row += one.size(0);
    }
  }
}

TEST(Transformer, DoesNotLookAheadInTheTarget) {
  TinyTransformer tiny;
  torch::NoGradGuard no_grad;
  const auto sources = random_sentences({6}, 23);
  auto targets = random_sentences({8}, 23);
  const Tensor before = tiny.model.forward(translation_input(sources, targets), plain_context());
  targets[0][5] = targets[0][5] == 4 ? 5 : 4;
  const Tensor after = tiny.model.forward(translation_input(sources, targets), plain_context());
  EXPECT_TRUE(torch::allclose(before.narrow(0, 0, 5), after.narrow(0, 0, 5), 1e-5, 1e-6));
  EXPECT_FALSE(torch::allclose(before.narrow(0, 5, 3), after.narrow(0, 5, 3), 1e-3, 1e-3));
}

TEST(Transformer, DropsOutDifferentlyInEveryStepAndNotAtAllOutsideTraining) {
  TransformerConfig config = TinyTransformer::tiny_config();
  config.attention_dropout = config.relu_dropout = 0.2;
  TinyTransformer tiny(config);
  torch::NoGradGuard no_grad;
  const TranslationInput input =
      translation_input(random_sentences({5, 4}, 23), random_sentences({4, 6}, 23));
  ForwardContext context = plain_context();
  const Tensor quiet = tiny.model.forward(input, context);
  context.seed = 9;
  EXPECT_TRUE(torch::equal(quiet, tiny.model.forward(input, context)));
  context.training = true;
  const Tensor noisy = tiny.model.forward(input, context);
  EXPECT_TRUE(torch::equal(noisy, tiny.model.forward(input, context)));
  EXPECT_FALSE(torch::allclose(noisy, quiet, 1e-3, 1e-3));
  context.step = 1;
  EXPECT_FALSE(torch::allclose(noisy, tiny.model.forward(input, context), 1e-3, 1e-3));
  context.step = 0;
  context.seed = 10;
  EXPECT_FALSE(torch::allclose(noisy, tiny.model.forward(input, context), 1e-3, 1e-3));
}

TEST(Transformer, DropsTheSameElementsOfASentenceInAnyBatch) {
  TransformerConfig config = TinyTransformer::tiny_config();
  config.attention_dropout = config.relu_dropout = 0.2;
  TinyTransformer tiny(config);
  torch::NoGradGuard no_grad;
  const TranslationInput both =
      translation_input(random_sentences({5, 4}, 23), random_sentences({4, 6}, 23));
  TranslationInput second =
      translation_input({random_sentences({5, 4}, 23)[1]}, {random_sentences({4, 6}, 23)[1]});
  second.source.rows = both.source.rows.narrow(0, 5, 4);
  second.target.rows = both.target.rows.narrow(0, 4, 6);
  ForwardContext context;
  context.training = true;
  EXPECT_TRUE(torch::allclose(tiny.model.forward(both, context).narrow(0, 4, 6),
                              tiny.model.forward(second, context), 1e-4, 1e-5));
}

TEST(Transformer, TakesSentencesLongerThanItsPreparedPositions) {
  TinyTransformer tiny;  // 16 positions prepared
  torch::NoGradGuard no_grad;
  const auto sources = random_sentences({40, 3}, 23), targets = random_sentences({2, 33}, 23);
  const Tensor out = tiny.model.forward(translation_input(sources, targets), plain_context());
  EXPECT_EQ(out.size(0), 35);
  EXPECT_TRUE(out.isfinite().all().item<bool>());
}

TEST(Transformer, ComputesInBfloat16CloseToFp32) {
  for (bool fused : {false, true}) {
    TinyTransformer tiny;
    torch::NoGradGuard no_grad;
    const TranslationInput input =
        translation_input(random_sentences({5, 4}, 23), random_sentences({4, 6}, 23));
    ForwardContext context;
    context.numerics.fused = fused;
    const Tensor exact = tiny.model.forward(input, context);
    context.numerics.compute = at::kBFloat16;
    const Tensor rounded = tiny.model.forward(input, context);
    ASSERT_EQ(rounded.scalar_type(), at::kBFloat16);
    // Outputs are of norm's size, about 1; bf16 keeps 8 bits, lost in each of 4 layers.
    EXPECT_LT((rounded.to(at::kFloat) - exact).abs().max().item<float>(), 0.15) << fused;
  }
}

TEST(Transformer, GivesEveryWeightAGradient) {
  TinyTransformer tiny;
  const TranslationInput input =
      translation_input(random_sentences({5, 4}, 23), random_sentences({4, 6}, 23));
  Tensor weights = torch::linspace(-1, 1, 240).view({10, 24});
  (tiny.model.forward(input, plain_context()) * weights).sum().backward();
  for (const ParameterRef& p : tiny.parameters.list()) {
    EXPECT_GT(p->value.grad().abs().max().item<float>(), 0) << p->name;
  }
}

}  // namespace
}  // namespace lockstep
