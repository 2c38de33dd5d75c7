#include "nn/cross_entropy.h"

#include <torch/nn.h>

#include "op_testing.h"

namespace lockstep {
namespace {

torch::Tensor some_targets(int64_t rows, int64_t vocabulary) {
  return (torch::arange(rows, torch::kInt64) * 31 % vocabulary).contiguous();
}

// The operation as run_operation knows it would be scaled by a random gradient, which the fused
// path refuses; so backward is called here.
struct LossResult {
  torch::Tensor loss, nll, correct, d_hidden, d_table;
};
LossResult run(const torch::Tensor& hidden, TestParameters& p, double smoothing,
               const Numerics& numerics) {
  p.all.gradients().fill_(1);
  torch::Tensor leaf = hidden.detach().clone().set_requires_grad(true);
  torch::Tensor targets = some_targets(hidden.size(0), p[0]->shape[0]);
  CrossEntropyResult result = smoothed_cross_entropy(leaf, *p[0], targets, smoothing, numerics);
  result.loss.backward();
  return {result.loss.detach(), result.nll, result.correct, leaf.grad(),
          p[0]->value.grad().clone()};
}

// OpenSeq2Seq's PaddedCrossEntropyLossWithSmoothing, written out: cross-entropy with a target of
// 1 - s and s / (vocabulary - 1) elsewhere, less the entropy of that distribution.
TEST(LabelSmoothing, OverTheOthersLessItsEntropyIsTheDivergenceFromTheSmoothedTarget) {
  const int64_t vocabulary = 40, rows = 25;
  const double smoothing = 0.1;
  TestParameters p({{vocabulary, 8}});
  torch::Tensor hidden = random_tensor({rows, 8}, 1), targets = some_targets(rows, vocabulary);
  torch::Tensor log_p = at::linear(hidden, p[0]->value).to(torch::kDouble).log_softmax(1);
  torch::Tensor smoothed =
      torch::full({rows, vocabulary}, smoothing / (vocabulary - 1), torch::kDouble)
          .scatter_(1, targets.unsqueeze(1), 1 - smoothing);
  const double expected = (smoothed * (smoothed.log() - log_p)).sum().item<double>();
  const LabelSmoothing rule = label_smoothing(smoothing, vocabulary, {true, true});
  const double loss = run(hidden, p, rule.share, {}).loss.item<double>();
  EXPECT_NEAR(loss - rule.entropy * rows, expected, 1e-4 * expected);
}

TEST(LabelSmoothing, IsPlainByDefaultAndNothingWithoutSmoothing) {
  EXPECT_EQ(label_smoothing(0.1, 40, {}).share, 0.1);
  EXPECT_EQ(label_smoothing(0.1, 40, {}).entropy, 0);
  EXPECT_EQ(label_smoothing(0, 40, {true, true}).share, 0);
  EXPECT_EQ(label_smoothing(0, 40, {true, true}).entropy, 0);
}

// With a bias both ways give what libtorch gives, and the bias changes the gradients.
TEST(CrossEntropy, TakesAConstantBiasOfTheLogits) {
  const int64_t vocabulary = 257, rows = 90;
  TestParameters p({{vocabulary, 16}});
  const torch::Tensor hidden = random_tensor({rows, 16}, 1), bias = random_tensor({vocabulary}, 2);
  const torch::Tensor targets = some_targets(rows, vocabulary);
  torch::Tensor table = p[0]->value.detach().clone().set_requires_grad(true);
  torch::Tensor input = hidden.clone().set_requires_grad(true);
  const torch::Tensor want = torch::nn::functional::cross_entropy(
      at::linear(input, table) + bias, targets,
      torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum).label_smoothing(0.1));
  want.backward();
  for (bool fused : {true, false}) {
    p.all.gradients().fill_(0);
    torch::Tensor leaf = hidden.clone().set_requires_grad(true);
    const CrossEntropyResult got =
        smoothed_cross_entropy(leaf, {*p[0], bias}, targets, 0.1, {at::kFloat, fused});
    got.loss.backward();
    EXPECT_NEAR(got.loss.item<double>(), want.item<double>(), 1e-5 * want.item<double>()) << fused;
    // fp32, sums of up to 257 terms in another order.
    EXPECT_LT((leaf.grad() - input.grad()).abs().max().item<double>(), 2e-5) << fused;
    EXPECT_LT((p[0]->value.grad() - table.grad()).abs().max().item<double>(), 2e-4) << fused;
  }
}

TEST(CrossEntropy, FusedEqualsPlain) {
  for (int64_t vocabulary : {3, 17, 257, 1000}) {
    for (double smoothing : {0.0, 0.1}) {
      for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        SCOPED_TRACE(compute == at::kFloat ? "fp32" : "bf16");
        const int64_t rows = vocabulary == 17 ? 1 : 90;
        TestParameters p({{vocabulary, 16}});
        torch::Tensor hidden = random_tensor({rows, 16}, 1, compute);
        const LossResult plain = run(hidden, p, smoothing, {compute, false});
        for_each_isa([&] {
          const LossResult fused = run(hidden, p, smoothing, {compute, true});
          EXPECT_TENSORS_CLOSE(fused.loss, plain.loss, 1e-5);
          EXPECT_TENSORS_CLOSE(fused.nll, plain.nll, 1e-5);
          EXPECT_EQ(fused.correct.item<int64_t>(), plain.correct.item<int64_t>());
          const Tolerance tolerance;
          EXPECT_TENSORS_CLOSE(fused.d_hidden, plain.d_hidden, tolerance.of(compute));
          EXPECT_TENSORS_CLOSE(fused.d_table, plain.d_table, tolerance.of(compute));
        });
      }
    }
  }
}

// MKL's sums over so large a vocabulary are off by up to 2.5e-5 of the largest gradient.
TEST(CrossEntropy, SeveralChunksEqualPlainAndTheSumsInFp64) {
  // 120,000 entries are 480 kB a row: 128 MiB hold 279 rows, so two chunks.
  const int64_t vocabulary = 120000, rows = 301;
  TestParameters p({{vocabulary, 4}});
  const torch::Tensor hidden = random_tensor({rows, 4}, 1);
  torch::Tensor leaf = hidden.to(torch::kDouble).set_requires_grad(true);
  torch::Tensor table = p[0]->value.detach().to(torch::kDouble).set_requires_grad(true);
  torch::nn::CrossEntropyLoss loss(
      torch::nn::CrossEntropyLossOptions().label_smoothing(0.1).reduction(torch::kSum));
  torch::Tensor expected = loss(at::linear(leaf, table), some_targets(rows, vocabulary));
  expected.backward();
  const LossResult plain = run(hidden, p, 0.1, {at::kFloat, false});
  const LossResult fused = run(hidden, p, 0.1, {at::kFloat, true});
  EXPECT_EQ(fused.correct.item<int64_t>(), plain.correct.item<int64_t>());
  for (const LossResult& result : {plain, fused}) {
    EXPECT_TENSORS_CLOSE(result.loss, expected.detach().to(torch::kFloat), 1e-5);
    EXPECT_TENSORS_CLOSE(result.d_hidden, leaf.grad().to(torch::kFloat), 1e-4);
    EXPECT_TENSORS_CLOSE(result.d_table, (table.grad() + 1).to(torch::kFloat), 2e-5);
  }
}

TEST(CrossEntropy, EqualsTorchsLossWithLabelSmoothing) {
  TestParameters p({{40, 8}});
  torch::Tensor hidden = random_tensor({25, 8}, 1), targets = some_targets(25, 40);
  torch::Tensor logits = at::linear(hidden, p[0]->value).detach();
  torch::nn::CrossEntropyLoss loss(
      torch::nn::CrossEntropyLossOptions().label_smoothing(0.1).reduction(torch::kSum));
  torch::nn::CrossEntropyLoss nll(torch::nn::CrossEntropyLossOptions().reduction(torch::kSum));
  for (bool fused : {false, true}) {
    CrossEntropyResult result =
        smoothed_cross_entropy(hidden, *p[0], targets, 0.1, {at::kFloat, fused});
    EXPECT_TENSORS_CLOSE(result.loss.detach(), loss(logits, targets), 1e-6);
    EXPECT_TENSORS_CLOSE(result.nll, nll(logits, targets), 1e-6);
  }
}

TEST(CrossEntropy, WithoutGradModeNothingIsAdded) {
  TestParameters p({{40, 8}});
  p.all.gradients().zero_();
  torch::NoGradGuard no_grad;
  CrossEntropyResult result =
      smoothed_cross_entropy(random_tensor({25, 8}, 1), *p[0], some_targets(25, 40), 0.1, {});
  EXPECT_FALSE(result.loss.requires_grad());
  EXPECT_EQ(p.all.gradients().abs().sum().item<float>(), 0);
}

TEST(CrossEntropy, FusedRefusesAGradientOtherThanOne) {
  TestParameters p({{40, 8}});
  torch::Tensor hidden = random_tensor({25, 8}, 1).set_requires_grad(true);
  CrossEntropyResult result = smoothed_cross_entropy(hidden, *p[0], some_targets(25, 40), 0.1, {});
  EXPECT_THROW((result.loss * 0.5).backward(), c10::Error);
}

TEST(CrossEntropy, RefusesATargetOutsideTheVocabulary) {
  TestParameters p({{40, 8}});
  torch::Tensor targets = torch::full({2}, 40, torch::kInt64);
  EXPECT_THROW(smoothed_cross_entropy(random_tensor({2, 8}, 1), *p[0], targets, 0, {}),
               c10::IndexError);
}

TEST(CrossEntropy, LossAndGradientStayFiniteForHugeLogits) {
  TestParameters p({{50, 8}});
  torch::Tensor hidden = random_tensor({6, 8}, 1) * 1000;
  const LossResult plain = run(hidden, p, 0.1, {at::kFloat, false});
  for_each_isa([&] {
    const LossResult fused = run(hidden, p, 0.1, {at::kFloat, true});
    EXPECT_TENSORS_CLOSE(fused.loss, plain.loss, 1e-5);
    EXPECT_TENSORS_CLOSE(fused.d_hidden, plain.d_hidden, 2e-4);
  });
}

}  // namespace
}  // namespace lockstep
