#include "kernels/kernel_table.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <cstring>

#include "support/instruction_sets.h"

namespace lockstep {
namespace {

TEST(Isa, EveryTableIsComplete) {
  ASSERT_NE(kernels_for("generic"), nullptr);
  EXPECT_EQ(kernels_for("sse17"), nullptr);
  for (const Kernels* table : kernels_here()) {
    // What libtorch does where there are no tile products.
    Kernels whole = *table;
    const bool tiles = std::string(table->isa) == "amx";
    EXPECT_EQ(whole.weight_gradient.add != nullptr, tiles) << table->isa;
    EXPECT_EQ(whole.tile_convolution.convolve != nullptr, tiles) << table->isa;
    if (!tiles) {
      whole.weight_gradient = {
          [](const WeightGradientArgs&, const WeightGradientPart&, void*) {},
          [](const WeightGradientArgs&, const WeightGradientPart&) { return int64_t{0}; }};
      whole.tile_convolution = {
          [](const TileWeightArgs&, int64_t, int64_t) {},
          [](const TileConvolutionArgs&, const TileConvolutionPart&, void*) {},
          [](const TileConvolutionArgs&) { return int64_t{0}; },
          [](const TileConvolutionArgs&) { return int64_t{0}; }};
    }
    whole.fast_bf16 = true;  // all others are pointers, of which none may be null
    std::vector<void*> pointers(sizeof(Kernels) / sizeof(void*));
    std::memcpy(pointers.data(), &whole, sizeof(Kernels));
    for (void* pointer : pointers) EXPECT_NE(pointer, nullptr) << table->isa;
  }
}

TEST(Isa, ExpIsWithinTwoTenMillionths) {
  std::vector<float> x, y;
  for (float v = -87.2f; v < 88.2f; v += 0.0013f) x.push_back(v);
  for (float v = -1e-6f; v < 1e-6f; v += 1e-8f) x.push_back(v);
  y.resize(x.size());
  for (const Kernels* table : kernels_here()) {
    table->exponential(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      worst = std::max(worst, std::abs(y[i] - exact) / exact);
    }
    EXPECT_LT(worst, 2e-7) << table->isa;
    const float outside[] = {-1e30f, 1e30f, std::nanf("")};
    float result[3];
    table->exponential(outside, result, 3);
    EXPECT_LT(result[0], 2e-38f);
    EXPECT_GT(result[1], 1e38f);
    EXPECT_TRUE(std::isfinite(result[1]));
    EXPECT_TRUE(std::isnan(result[2]));
  }
}

// Against libtorch's in fp64: Phi is off by less than 2e-7, a rounding comes on top; the slope has
// Phi and a density.
TEST(Isa, GeluAndItsSlopeAreWithinFourTenMillionths) {
  const torch::Tensor x =
      torch::cat({torch::linspace(-14, 14, 100001), torch::linspace(-1, 1, 9999),
                  torch::tensor({-1e30f, -60.0f, 60.0f, 1e30f, 0.0f})});
  torch::Tensor exact = x.to(torch::kDouble).set_requires_grad(true);
  const torch::Tensor value = at::gelu(exact);
  value.sum().backward();
  const torch::Tensor zero = torch::zeros({1}), size = x.to(torch::kDouble).abs().clamp_min(1);
  for (const Kernels* table : kernels_here()) {
    const torch::Tensor slope = x.clone(), y = torch::empty_like(x);
    table->fp32.gelu_dropout(
        {slope.data_ptr<float>(), zero.data_ptr<float>(), y.data_ptr<float>(), 1, {}}, 0,
        x.numel());
    EXPECT_LT(((y - value.detach()).abs() / size).max().item<double>(), 3e-7) << table->isa;
    EXPECT_LT((slope - exact.grad()).abs().max().item<double>(), 4e-7) << table->isa;
  }
}

// Against libtorch's in fp64: the exponential is off by less than 2e-7, and a division and two
// roundings come on top.
TEST(Isa, SiluAndItsSlopeAreWithinFiveTenMillionths) {
  const torch::Tensor x =
      torch::cat({torch::linspace(-14, 14, 100001), torch::linspace(-1, 1, 9999),
                  torch::tensor({-1e30f, -60.0f, 60.0f, 1e30f, 0.0f})});
  torch::Tensor exact = x.to(torch::kDouble).set_requires_grad(true);
  const torch::Tensor value = at::silu(exact);
  value.sum().backward();
  const torch::Tensor zero = torch::zeros({1}), size = x.to(torch::kDouble).abs().clamp_min(1);
  for (const Kernels* table : kernels_here()) {
    const torch::Tensor slope = x.clone(), y = torch::empty_like(x);
    table->fp32.silu_dropout(
        {slope.data_ptr<float>(), zero.data_ptr<float>(), y.data_ptr<float>(), 1, {}}, 0,
        x.numel());
    EXPECT_LT(((y - value.detach()).abs() / size).max().item<double>(), 3e-7) << table->isa;
    EXPECT_LT((slope - exact.grad()).abs().max().item<double>(), 5e-7) << table->isa;
  }
}

TEST(Isa, ConversionToBfloat16RoundsAsTorch) {
  std::vector<float> x;
  for (uint32_t bits = 0; bits < 0xffff0000u - 40503u; bits += 40503u) {
    float v;
    std::memcpy(&v, &bits, sizeof v);
    if (!std::isnan(v)) x.push_back(v);
  }
  for (uint32_t bits : {0x3f808000u, 0x3f818000u, 0x3f807fffu, 0x3f808001u, 0x7f7fffffu,
                        0x7f800000u, 0xff800000u}) {  // ties, largest finite, infinities
    float v;
    std::memcpy(&v, &bits, sizeof v);
    x.push_back(v);
  }
  const int64_t n = static_cast<int64_t>(x.size());
  torch::Tensor expected = torch::from_blob(x.data(), {n}).to(torch::kBFloat16);
  for (const Kernels* table : kernels_here()) {
    torch::Tensor actual = torch::empty_like(expected), back = torch::empty({n});
    Bf16* low = reinterpret_cast<Bf16*>(actual.data_ptr());
    table->to_bf16(x.data(), low, n);
    EXPECT_TRUE(torch::equal(actual, expected)) << table->isa;
    table->to_float(low, back.data_ptr<float>(), n);
    EXPECT_TRUE(torch::equal(back, expected.to(torch::kFloat))) << table->isa;
    const float nan = std::nanf("");
    table->to_bf16(&nan, low, 1);
    EXPECT_TRUE(actual[0].isnan().item<bool>());
  }
}

// Through kernels that do nothing but convert: dropout off, no bias.
TEST(Isa, ConversionToHalfAndBackIsTorchs) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < 0xffffffffu; bits += 40503u) {
    const auto narrow = static_cast<uint32_t>(bits);
    float v;
    std::memcpy(&v, &narrow, sizeof v);
    if (!std::isnan(v)) x.push_back(v);
  }
  torch::Tensor halves = torch::arange(0, 0x10000, torch::kInt32).to(torch::kInt16);
  torch::Tensor all = halves.view(torch::kHalf).to(torch::kFloat);  // every half, and between two
  torch::Tensor values = torch::cat(
      {torch::from_blob(x.data(), {std::ssize(x)}), all, all * 1.00048828125, all * 0.99951171875});
  values = values.index({values.isnan().logical_not()}).contiguous();
  const int64_t n = values.numel();
  torch::Tensor expected = values.to(torch::kHalf), zeros = torch::zeros({n});
  torch::Tensor no_bias = torch::zeros({n}, torch::kHalf);
  for (const Kernels* table : kernels_here()) {
    torch::Tensor actual = torch::empty_like(expected), back = torch::empty({n});
    auto half = [](const torch::Tensor& t) { return static_cast<Fp16*>(t.data_ptr()); };
    table->fp16.add_dropout_backward({values.data_ptr<float>(), half(actual), n, {}}, 0, 1);
    EXPECT_TRUE(torch::equal(actual, expected)) << table->isa;
    table->fp16.add_dropout(
        {zeros.data_ptr<float>(), half(actual), half(no_bias), back.data_ptr<float>(), n, {}}, 0,
        1);
    EXPECT_TRUE(torch::equal(back, expected.to(torch::kFloat))) << table->isa;
    const float nan = std::nanf("");
    table->fp16.add_dropout_backward({&nan, half(actual), 1, {}}, 0, 1);
    EXPECT_TRUE(actual[0].isnan().item<bool>());
  }
}

}  // namespace
}  // namespace lockstep
