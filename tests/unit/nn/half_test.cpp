// The operations in fp16: fused against plain, and what loss scaling is for.
#include "nn/attention.h"
#include "nn/cross_entropy.h"
#include "nn/layer_norm.h"
#include "nn/linear_epilogues.h"
#include "op_testing.h"

namespace lockstep {
namespace {

// fp16 keeps 11 bits, one rounding is 2^-11 = 0.05 %; fused and plain round at different places.
const Tolerance kTolerance{.fp32 = 2e-5, .bf16 = 4e-3};

struct HalfBlock {
  TestParameters p;
  Linear layer;
  LayerNorm norm;
  HalfBlock() : p({{37, 20}, {37}, {37}, {37}}, at::kHalf), layer{p[0], p[1]}, norm{p[2], p[3]} {}
};

TEST(Half, LinearFusedEqualsPlain) {
  HalfBlock block;
  Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
    return linear(in[0], block.layer, numerics);
  };
  expect_fused_equals_plain(operation, {random_tensor({70, 20}, 1, at::kHalf)}, &block.p, at::kHalf,
                            kTolerance);
}

TEST(Half, LinearReluFusedEqualsPlain) {
  HalfBlock block;
  // Rounding must not carry a sum over zero.
  block.p[1]->value.detach().copy_(torch::arange(37) % 2 * 80 - 40);
  block.p.all.refresh_low();
  const Dropout dropout = test_dropout(0.1, 70);
  Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
    return linear_relu(in[0], block.layer, dropout, numerics);
  };
  expect_fused_equals_plain(operation, {random_tensor({70, 20}, 1, at::kHalf)}, &block.p, at::kHalf,
                            kTolerance);
}

TEST(Half, LinearGeluFusedEqualsPlain) {
  HalfBlock block;
  const Dropout dropout = test_dropout(0.1, 70);
  Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
    return linear_gelu(in[0], block.layer, dropout, numerics);
  };
  expect_fused_equals_plain(operation, {random_tensor({70, 20}, 1, at::kHalf)}, &block.p, at::kHalf,
                            kTolerance);
}

TEST(Half, LinearResidualNormFusedEqualsPlain) {
  HalfBlock block;
  const Dropout dropout = test_dropout(0.1, 70);
  Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
    ResidualNorm out =
        linear_residual_norm(in[0], in[1], block.layer, dropout, block.norm, numerics);
    return torch::cat({out.stream, out.normed.to(torch::kFloat)}, 1);
  };
  expect_fused_equals_plain(operation,
                            {random_tensor({70, 37}, 2), random_tensor({70, 20}, 1, at::kHalf)},
                            &block.p, at::kHalf, kTolerance);
}

TEST(Half, AttentionFusedEqualsPlain) {
  Segments segments = make_segments({7, 1, 16, 33}, torch::kCPU);
  AttentionOptions options{4, true, test_dropout(0.3, segments.tokens())};
  Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
    return self_attention(in[0], segments, options, numerics);
  };
  expect_fused_equals_plain(operation, {random_tensor({segments.tokens(), 3 * 64}, 1, at::kHalf)},
                            nullptr, at::kHalf, kTolerance);
}

struct Gradients {
  torch::Tensor hidden, table;
};

// Small weights: every entry of the vocabulary is about as likely.
Gradients gradients(const Numerics& numerics, int64_t vocabulary, double smoothing) {
  TestParameters p({{vocabulary, 16}}, at::kHalf);
  p.all.values().detach().mul_(0.01);
  p.all.refresh_low();
  p.all.values().detach().copy_(p.all.low());  // fp32 starts from the same weights
  p.all.gradients().zero_();
  torch::Tensor hidden = random_tensor({30, 16}, 1, at::kHalf).to(numerics.compute);
  hidden.set_requires_grad(true);
  CrossEntropyResult result =
      smoothed_cross_entropy(hidden, *p[0], torch::arange(30, torch::kInt64), smoothing, numerics);
  result.loss.backward(torch::full_like(result.loss, numerics.loss_scale));
  return {hidden.grad().to(torch::kFloat), p[0]->value.grad().clone()};
}

TEST(Half, CrossEntropyMakesScaledGradients) {
  const Gradients plain = gradients({at::kHalf, false, 64}, 257, 0.1);
  for_each_isa([&] {
    const Gradients fused = gradients({at::kHalf, true, 64}, 257, 0.1);
    EXPECT_TENSORS_CLOSE(fused.hidden, plain.hidden, 4e-3);
    EXPECT_TENSORS_CLOSE(fused.table, plain.table, 4e-3);
  });
}

// Gradients of logits of (1 - 0.9) / 50,000 are 34 times the smallest number of fp16, which leaves
// them one or two digits; scaled they have all.
TEST(Half, SmallGradientsKeepTheirDigitsWhenScaled) {
  auto of_other_rows = [](const Numerics& numerics) {  // than those of the targets
    return gradients(numerics, 50'000, 0.9).table.narrow(0, 50, 1000) / numerics.loss_scale;
  };
  const torch::Tensor exact = of_other_rows({at::kFloat, true});
  const double scaled = relative_difference(of_other_rows({at::kHalf, true, 4096}), exact);
  const double unscaled = relative_difference(of_other_rows({at::kHalf, true, 1}), exact);
  EXPECT_LT(scaled, 5e-3);
  EXPECT_GT(unscaled, 5 * scaled);
}

}  // namespace
}  // namespace lockstep
