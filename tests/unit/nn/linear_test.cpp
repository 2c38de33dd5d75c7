#include "nn/linear.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include "op_testing.h"

namespace lockstep {
namespace {

TEST(Linear, FusedEqualsPlain) {
  for (int64_t rows : {1, 70}) {
    for (int64_t in : {3, 64}) {
      for (int64_t out : {17, 257}) {
        for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
          TestParameters p({{out, in}, {out}});
          for (const Linear& layer : {Linear{p[0], p[1]}, Linear{p[0], nullptr}}) {
            Operation operation = [&](const std::vector<torch::Tensor>& x,
                                      const Numerics& numerics) {
              return linear(x[0], layer, numerics);
            };
            expect_fused_equals_plain(operation, {random_tensor({rows, in}, 1, compute)}, &p,
                                      compute);
          }
        }
      }
    }
  }
}

// Widths that tiles of 32 fill, rows that do not; more than a block of columns and of rows.
TEST(Linear, FusedEqualsPlainWhereTilesFit) {
  for (const auto& [rows, in, out] :
       {std::array<int64_t, 3>{1, 32, 64}, std::array<int64_t, 3>{70, 64, 32},
        std::array<int64_t, 3>{450, 416, 96}}) {
    for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      TestParameters p({{out, in}, {out}});
      Operation operation = [&, layer = Linear{p[0], p[1]}](const std::vector<torch::Tensor>& x,
                                                            const Numerics& numerics) {
        return linear(x[0], layer, numerics);
      };
      for (int threads : {1, 3}) {
        Threads scope(threads);
        expect_fused_equals_plain(operation, {random_tensor({rows, in}, 1, compute)}, &p, compute);
      }
    }
  }
}

TEST(Linear, WeightGradientsOfManyRowsAndOutputsAreThoseOfThePlainPath) {
  // More rows than are packed at once, more outputs than one call takes, more inputs than outputs.
  for (const auto& [rows, in, out] :
       {std::array<int64_t, 3>{2100, 64, 96}, {4500, 160, 32}, {70, 32, 1100}, {33, 64, 1088}}) {
    TestParameters p({{out, in}, {out}});
    const Linear layer{p[0], p[1]};
    Operation operation = [&](const std::vector<torch::Tensor>& x, const Numerics& numerics) {
      return linear(x[0], layer, numerics);
    };
    expect_fused_equals_plain(operation, {random_tensor({rows, in}, 1, at::kBFloat16)}, &p,
                              at::kBFloat16);
  }
}

TEST(Linear, HooksOfTheWeightsAccumulatorRunOnceAndAfterTheGradientIsThere) {
  TestParameters p({{8, 4}, {8}});
  p.all.gradients().zero_();
  int calls = 0;
  bool nonzero = false;
  auto accumulator = torch::autograd::impl::grad_accumulator(p[0]->value);
  accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [&](const torch::autograd::variable_list& out, const torch::autograd::variable_list&) {
        ++calls;
        nonzero = p[0]->value.grad().abs().sum().item<float>() > 0;
        return out;
      }));
  torch::Tensor x = random_tensor({5, 4}, 1);
  // Used twice: the hook belongs to the whole backward pass, not to a use.
  torch::Tensor y = linear(x, {p[0], p[1]}, {}) + linear(x * 2, {p[0], p[1]}, {});
  y.sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(nonzero);
  EXPECT_TRUE(torch::allclose(p[1]->value.grad(), torch::full({8}, 10.0f)));
}

TEST(Linear, LeavesFrozenWeightsAlone) {
  TestParameters p({{8, 4}, {8}});
  p.all.gradients().zero_();
  p[0]->value.set_requires_grad(false);
  torch::Tensor x = random_tensor({5, 4}, 1).set_requires_grad(true);
  linear(x, {p[0], p[1]}, {}).sum().backward();
  EXPECT_EQ(p[0]->value.grad().abs().sum().item<float>(), 0);
  EXPECT_GT(p[1]->value.grad().abs().sum().item<float>(), 0);
  EXPECT_TRUE(x.grad().defined());
}

TEST(Linear, RefusesTheWrongWidthOrType) {
  TestParameters p({{8, 4}, {8}});
  EXPECT_THROW(linear(random_tensor({5, 3}, 1), {p[0], p[1]}, {}), c10::Error);
  EXPECT_THROW(linear(random_tensor({5, 4}, 1, at::kBFloat16), {p[0], p[1]}, {}), c10::Error);
}

}  // namespace
}  // namespace lockstep
