#include "optim/optimizers/adam.h"

#include <gtest/gtest.h>
#include <torch/optim.h>

#include "base/error.h"
#include "optim/optimizers/catalogue.h"

namespace lockstep {
namespace {

// Steps of ours and of torch::optim on the same gradients.
void expect_equal_steps(bool decoupled, double weight_decay) {
  torch::manual_seed(1);
  torch::Tensor start = torch::randn({1003});
  AdamConfig config(decoupled ? AdamKind::kAdamW : AdamKind::kAdam);
  config.beta2 = 0.999;
  config.epsilon = 1e-8;
  config.weight_decay = weight_decay;
  FlatArrays arrays{start.clone(), torch::zeros_like(start), start.to(torch::kBFloat16),
                    start.clone()};
  Adam ours(config, arrays);

  torch::Tensor theirs = start.clone().set_requires_grad(true);
  std::unique_ptr<torch::optim::Optimizer> reference;
  if (decoupled) {
    reference = std::make_unique<torch::optim::AdamW>(
        std::vector<torch::Tensor>{theirs},
        torch::optim::AdamWOptions(1e-2).weight_decay(weight_decay));
  } else {
    reference = std::make_unique<torch::optim::Adam>(
        std::vector<torch::Tensor>{theirs},
        torch::optim::AdamOptions(1e-2).weight_decay(weight_decay));
  }
  torch::Tensor average = start.clone();
  for (int step = 0; step < 5; ++step) {
    torch::Tensor gradient = torch::randn({1003});
    arrays.gradients.copy_(gradient * 8);  // the step divides again
    ours.step({.lr = 1e-2, .gradient_scale = 0.125, .average_decay = 0.9});
    theirs.mutable_grad() = gradient.clone();
    reference->step();
    average.lerp_(theirs.detach(), 0.1);
  }
  // fp32 rounding of five steps of size 1e-2 on numbers of size 1.
  EXPECT_TRUE(torch::allclose(arrays.values, theirs.detach(), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(arrays.average, average, 1e-5, 1e-6));
  EXPECT_TRUE(torch::equal(arrays.low, arrays.values.to(torch::kBFloat16)));
  EXPECT_EQ(arrays.gradients.abs().max().item<float>(), 0);
}

TEST(Adam, StepsAsTorchsAdam) { expect_equal_steps(false, 0); }
TEST(Adam, AddsWeightDecayToTheGradientAsTorchsAdam) { expect_equal_steps(false, 0.1); }
TEST(AdamW, DecaysWeightsDirectlyAsTorchsAdamW) { expect_equal_steps(true, 0.1); }

TEST(EuclideanNorm, IsExactForAnyNumberOfThreads) {
  torch::Tensor x = torch::randn({200'001});
  double expected = x.to(torch::kFloat64).norm().item<double>();
  at::set_num_threads(1);
  double one = euclidean_norm(x);
  at::set_num_threads(2);
  EXPECT_EQ(euclidean_norm(x), one);
  EXPECT_NEAR(one, expected, 1e-9 * expected);
  x[77] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(euclidean_norm(x)));
}

TEST(Optimizers, AreFoundByName) {
  EXPECT_NE(optimizers().find("adam"), nullptr);
  EXPECT_THROW(optimizers().get("adm"), ConfigError);
}

}  // namespace
}  // namespace lockstep
