#include "models/bert.h"

#include <gtest/gtest.h>

#include "support/tensor_compare.h"
#include "support/tiny_bert.h"

namespace lockstep {
namespace {

using torch::Tensor;

struct BertPass {
  Tensor logits, gradients;
};

BertPass run(TinyBert& tiny, const PackedTexts& texts, const BertForward& how) {
  tiny.parameters.gradients().zero_();
  const Tensor logits = tiny.model.logits(texts, how);
  const Tensor labels = torch::arange(logits.size(0)).remainder(logits.size(1));
  at::cross_entropy_loss(logits.to(torch::kFloat), labels).backward();
  return {logits.detach(), tiny.parameters.gradients().clone()};
}

TEST(Bert, FusedEqualsPlain) {
  for (double dropped : {0.0, 0.2}) {
    SCOPED_TRACE(dropped);
    BertShape shape = kTinyBert;
    shape.hidden_dropout_prob = shape.attention_probs_dropout_prob = dropped;
    TinyBert tiny(shape);
    const PackedTexts texts = random_texts({5, 16, 2, 9}, {3, 1, 8, 2});
    const BertPass plain = run(tiny, texts, {.numerics = {at::kFloat, false}, .training = true});
    const BertPass fused = run(tiny, texts, {.numerics = {}, .training = true});
    // Sums in another order, through 3 layers and back.
    EXPECT_LT(relative_difference(fused.logits, plain.logits), 1e-4);
    EXPECT_LT(relative_difference(fused.gradients, plain.gradients), 1e-4);
    const BertPass low = run(tiny, texts, {.numerics = {at::kBFloat16}, .training = true});
    EXPECT_LT(relative_difference(low.logits, plain.logits), 5e-2);
    EXPECT_LT(relative_difference(low.gradients, plain.gradients), 1e-1);
  }
}

// What is dropped depends on the text's key, the step and the seed, not on the batch.
TEST(Bert, ATextsLogitsDoNotDependOnItsBatch) {
  BertShape shape = kTinyBert;
  shape.hidden_dropout_prob = shape.attention_probs_dropout_prob = 0.2;
  TinyBert tiny(shape);
  torch::NoGradGuard no_grad;
  auto logits = [&](const PackedTexts& texts, int64_t step) {
    return tiny.model.logits(texts, {.numerics = {}, .training = true, .seed = 5, .step = step});
  };
  const PackedTexts all = random_texts({5, 16, 2, 9}, {3, 1, 8, 2});
  const PackedTexts part = random_texts({9, 16}, {2, 1});
  const Tensor expected = logits(all, 3).index_select(0, torch::tensor({3, 1}));
  EXPECT_LT(relative_difference(logits(part, 3), expected), 1e-5);
  EXPECT_GT(relative_difference(logits(part, 4), expected), 1e-2);
}

TEST(Bert, PredictsANumberWithOneLabel) {
  BertShape shape = kTinyBert;
  shape.num_labels = 1;
  TinyBert tiny(shape);
  const Tensor logits = tiny.model.logits(random_texts({4, 7}, {1, 2}), {.numerics = {}});
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{2, 1}));
}

TEST(Bert, RefusesTextsThatAreTooLong) {
  TinyBert tiny;
  EXPECT_THROW(tiny.model.logits(random_texts({17}, {1}), {.numerics = {}}), c10::Error);
}

TEST(Bert, KnowsWhichShapesMakeNoNetwork) {
  EXPECT_EQ(check_shape(kTinyBert), "");
  BertShape shape = kTinyBert;
  shape.num_attention_heads = 5;
  EXPECT_EQ(check_shape(shape), "hidden_size 32 does not divide into 5 heads");
}

}  // namespace
}  // namespace lockstep
