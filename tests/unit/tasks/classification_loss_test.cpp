#include "tasks/classification_loss.h"

#include <gtest/gtest.h>
#include <torch/nn.h>

#include <limits>

namespace lockstep {
namespace {

torch::Tensor numbers(std::vector<int64_t> shape, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return torch::randn(shape, generator, torch::kFloat);
}

TEST(ClassificationLoss, IsTorchsCrossEntropyWithItsGradient) {
  const torch::Tensor labels = torch::tensor({3, 0, 6, 6, 1});
  for (double smoothing : {0.0, 0.1}) {
    torch::Tensor ours = numbers({5, 7}, 1).set_requires_grad(true);
    torch::Tensor theirs = ours.detach().clone().set_requires_grad(true);
    const LossParts r = classification_loss(ours, {labels}, smoothing);
    const torch::Tensor expected =
        torch::nn::functional::cross_entropy(theirs, labels,
                                             torch::nn::functional::CrossEntropyFuncOptions()
                                                 .reduction(torch::kSum)
                                                 .label_smoothing(smoothing));
    r.loss.backward();
    expected.backward();
    EXPECT_TRUE(torch::allclose(r.loss, expected, 1e-6, 1e-6));
    EXPECT_TRUE(torch::allclose(ours.grad(), theirs.grad(), 1e-6, 1e-7));
    EXPECT_TRUE(torch::allclose(
        r.nll, torch::nll_loss(torch::log_softmax(theirs, 1), labels, {}, at::Reduction::Sum)));
  }
}

TEST(ClassificationLoss, OfMixedImagesIsTheWeightedMeanOfBothLabels) {
  const torch::Tensor logits = numbers({3, 4}, 2);
  const torch::Tensor a = torch::tensor({0, 1, 2}), b = torch::tensor({3, 3, 3});
  const torch::Tensor weights = torch::tensor({0.75f, 0.25f, 1.0f});
  const LossParts r = classification_loss(logits, {a, b, weights}, 0);
  const torch::Tensor log_p = torch::log_softmax(logits, 1);
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const double w = weights[i].item<double>();
    expected -=
        w * log_p[i][a[i].item<int64_t>()].item<double>() + (1 - w) * log_p[i][3].item<double>();
  }
  EXPECT_NEAR(r.loss.item<double>(), expected, 1e-5);
  // The right answers are the labels of the greater weight: 0, 3 and 2.
  const torch::Tensor best = logits.argmax(1);
  EXPECT_EQ(r.correct.item<int64_t>(), best.eq(torch::tensor({0, 3, 2})).sum().item<int64_t>());
}

TEST(ClassificationLoss, CountsTheFirstFiveAsTopkDoes) {
  const torch::Tensor logits = numbers({200, 12}, 3);
  const torch::Tensor labels = torch::arange(200).remainder(12);
  const LossParts r = classification_loss(logits, {labels}, 0);
  const auto [values, top] = logits.topk(5, 1);
  const torch::Tensor hits = top.eq(labels.unsqueeze(1));
  EXPECT_EQ(r.top5.item<int64_t>(), hits.sum().item<int64_t>());
  EXPECT_EQ(r.correct.item<int64_t>(), hits.select(1, 0).sum().item<int64_t>());
}

TEST(ClassificationLoss, TiesGoToTheFirstClassAndNoNumberIsNoAnswer) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor logits = torch::tensor({{1.f, 1.f, 1.f}, {1.f, 1.f, 1.f}, {0.f, none, 0.f}});
  const torch::Tensor ranks = label_ranks(logits, torch::tensor({0, 2, 1}));
  EXPECT_TRUE(torch::equal(ranks, torch::tensor({0, 2, 3}))) << ranks;
}

}  // namespace
}  // namespace lockstep
