// The operations in fp16: fused against plain, and what loss scaling is for; products of formats
// that the CPU is slow in.
#include "nn/attention.h"
#include "nn/cross_entropy.h"
#include "nn/fused.h"
#include "nn/layer_norm.h"
#include "nn/linear_epilogues.h"
#include "nn/product.h"
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

// bf16 is multiplied itself where that is fast.
TEST(Half, WidenedProductsAreThoseOfFp32RoundedOnce) {
  const torch::Tensor fp32 = random_tensor({70, 64}, 1), weight32 = random_tensor({37, 64}, 2);
  EXPECT_TRUE(detail::widens(fp32.to(at::kHalf)));
  EXPECT_FALSE(detail::widens(fp32));
  for (at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const torch::Tensor x = fp32.to(type), weight = weight32.to(type);
    if (!detail::widens(x)) continue;
    const torch::Tensor wide_x = x.to(at::kFloat), wide_weight = weight.to(at::kFloat);
    const torch::Tensor y = detail::product_transposed(wide_x, wide_weight);
    EXPECT_TRUE(torch::equal(detail::product_transposed(x, weight), y.to(type)));
    const torch::Tensor d_y = y.to(type), d_x = detail::product(d_y.to(at::kFloat), wide_weight);
    EXPECT_TRUE(torch::equal(detail::product(d_y, weight), d_x.to(type)));
    const torch::Tensor gradient = torch::ones({37, 64}), expected = gradient.clone();
    detail::add_weight_gradient(gradient, d_y, x);
    detail::add_weight_gradient(expected, d_y.to(at::kFloat), wide_x);
    EXPECT_TRUE(torch::equal(gradient, expected));
  }
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
