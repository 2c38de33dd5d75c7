#include "nn/layer_norm.h"

#include <torch/nn.h>

#include "op_testing.h"

namespace lockstep {
namespace {

TEST(LayerNorm, FusedEqualsPlain) {
  for (int64_t rows : {1, 65, 200}) {
    for (int64_t width : {3, 17, 64, 257}) {
      for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        TestParameters p({{width}, {width}});
        const LayerNorm layer{p[0], p[1]};
        Operation operation = [&](const std::vector<torch::Tensor>& x, const Numerics& numerics) {
          return layer_norm(x[0], layer, numerics);
        };
        // A mean far from zero: statistics by E[x^2] - E[x]^2 would fail here.
        expect_fused_equals_plain(operation, {random_tensor({rows, width}, 1) * 3 + 20}, &p,
                                  compute, {2e-4, 2e-2});
      }
    }
  }
}

TEST(LayerNorm, PlainEqualsTorchsModule) {
  TestParameters p({{33}, {33}});
  torch::nn::LayerNorm module(torch::nn::LayerNormOptions({33}));
  torch::NoGradGuard no_grad;
  module->weight.copy_(p[0]->value);
  module->bias.copy_(p[1]->value);
  torch::Tensor x = random_tensor({9, 33}, 1);
  EXPECT_TENSORS_CLOSE(layer_norm(x, {p[0], p[1]}, {at::kFloat, false}), module->forward(x), 1e-6);
  EXPECT_TENSORS_CLOSE(layer_norm(x, {p[0], p[1]}, {}), module->forward(x), 2e-6);
}

TEST(LayerNorm, GradientsDoNotDependOnTheNumberOfThreads) {
  TestParameters p({{48}, {48}});
  Operation operation = [&](const std::vector<torch::Tensor>& x, const Numerics& numerics) {
    return layer_norm(x[0], {p[0], p[1]}, numerics);
  };
  torch::Tensor x = random_tensor({1500, 48}, 1);
  auto run = [&](int threads) {
    Threads scope(threads);
    return run_operation(operation, {x}, &p, {});
  };
  const Outcome one = run(1), two = run(2);
  for (std::size_t i = 0; i < one.values.size(); ++i) {
    EXPECT_TRUE(torch::equal(one.values[i], two.values[i]));
  }
  for (std::size_t i = 0; i < one.gradients.size(); ++i) {
    EXPECT_TRUE(torch::equal(one.gradients[i], two.gradients[i]));
  }
}

}  // namespace
}  // namespace lockstep
