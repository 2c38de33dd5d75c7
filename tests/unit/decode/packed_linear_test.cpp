#include "decode/packed_linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <utility>

#include "support/instruction_sets.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr WeightFormat kFormats[] = {WeightFormat::kFp32, WeightFormat::kBf16, WeightFormat::kInt8};

at::ScalarType activation_type(WeightFormat format) {
  return format == WeightFormat::kBf16 ? at::kBFloat16 : at::kFloat;
}

// A packed matrix that takes and gives tensors.
class Product {
 public:
  Product(const Tensor& weight, const Tensor& bias, WeightFormat format)
      : linear({weight.data_ptr<float>(), bias.defined() ? bias.data_ptr<float>() : nullptr,
                weight.size(0), weight.size(1)},
               format, threads),
        type(activation_type(format)) {}

  Tensor operator()(const Tensor& x, bool relu = false) const {
    const Tensor out = torch::empty({x.size(0), linear.outputs()}, type);
    linear.multiply(prepare(x), relu ? ProductEnd::kStoreRelu : ProductEnd::kStore, out.data_ptr(),
                    threads);
    return out;
  }
  void add_to(const Tensor& stream, const Tensor& x) const {
    linear.multiply(prepare(x), ProductEnd::kAdd, stream.data_ptr(), threads);
  }
  Tensor part(const Tensor& x, int64_t first, int64_t count) const {
    const Tensor out = torch::empty({x.size(0), count});
    linear.multiply_part(prepare(x), {first, count}, out.data_ptr<float>(), count, threads);
    return out;
  }
  PackedInput prepare(const Tensor& x) const {
    PackedInput input;
    linear.prepare(x.data_ptr(), x.size(0), input, threads);
    return input;
  }

  OneThread threads;
  PackedLinear linear;
  at::ScalarType type;
};

struct Case {
  Case(int64_t rows, int64_t outputs, int64_t inputs) {
    at::Generator generator = at::detail::createCPUGenerator(5);
    x = torch::empty({rows, inputs}).normal_(0, 1, generator);
    weight = torch::empty({outputs, inputs}).normal_(0, 1, generator);
    bias = torch::empty({outputs}).normal_(0, 1, generator);
  }
  Tensor x, weight, bias;
};

// [rows, inputs] of integers and [rows, 1], as the header of the kernels says.
std::pair<Tensor, Tensor> quantised(const Tensor& x) {
  const Tensor largest = x.abs().amax(1, true);
  const Tensor scale = at::where(largest > 0, largest / 127, torch::ones_like(largest));
  return {(x / scale).round(), scale};
}

// x W^T + b in double, of the numbers that the format keeps.
Tensor expected(const Case& c, const Tensor& x, WeightFormat format) {
  const Tensor bias = c.bias.to(at::kDouble);
  if (format == WeightFormat::kInt8) {
    const auto [q, x_scale] = quantised(x);
    const auto [w, w_scale] = quantised(c.weight);
    const Tensor sums = q.to(at::kDouble).matmul(w.to(at::kDouble).t());
    return sums * x_scale.to(at::kDouble) * w_scale.to(at::kDouble).t() + bias;
  }
  const at::ScalarType type = activation_type(format);
  return x.to(type).to(at::kDouble).matmul(c.weight.to(type).to(at::kDouble).t()) + bias;
}

double largest_difference(const Tensor& got, const Tensor& want) {
  return (got.to(at::kDouble) - want).abs().max().item<double>();
}

TEST(PackedLinear, MultipliesExactlyForEverySizeFormatAndInstructionSet) {
  for_each_isa([] {
    for (WeightFormat format : kFormats) {
      for (int64_t rows : {1, 2, 5, 6, 13}) {
        for (auto [outputs, inputs] :
             {std::pair<int64_t, int64_t>{1, 1}, {24, 7}, {64, 24}, {130, 33}}) {
          const Case c(rows, outputs, inputs);
          const Product linear(c.weight, c.bias, format);
          const Tensor x = c.x.to(activation_type(format));
          const Tensor want = expected(c, c.x, format);
          const Tensor got = linear(x);
          ASSERT_EQ(got.sizes(), want.sizes());
          ASSERT_EQ(got.scalar_type(), activation_type(format));
          // Sums of up to 33 products of about 1 in fp32; a bf16 result is rounded once.
          const double size = want.abs().max().item<double>();
          const double tolerance = format == WeightFormat::kBf16 ? size / 256 : 1e-5 * size;
          EXPECT_LE(largest_difference(got, want), tolerance) << rows << " " << outputs;
          EXPECT_TRUE(torch::equal(linear(x, true), got.relu()));
          const Tensor stream = torch::ones({rows, outputs});
          linear.add_to(stream, x);
          EXPECT_LE(largest_difference(stream - 1, want), 2e-5 * (size + 1));
        }
      }
    }
  });
}

TEST(PackedLinear, WithoutABiasAddsNothing) {
  for (WeightFormat format : kFormats) {
    Case c(3, 70, 16);
    c.bias.zero_();
    const Tensor x = c.x.to(activation_type(format));
    EXPECT_TRUE(
        torch::equal(Product(c.weight, {}, format)(x), Product(c.weight, c.bias, format)(x)));
  }
}

TEST(PackedLinear, GivesEveryRowTheSameBitsWhateverStandsBesideIt) {
  for_each_isa([] {
    for (WeightFormat format : kFormats) {
      const Case c(19, 200, 96);
      const Product linear(c.weight, c.bias, format);
      const Tensor x = c.x.to(activation_type(format));
      const Tensor together = linear(x);
      for (int64_t row = 0; row < 19; ++row) {
        EXPECT_TRUE(torch::equal(linear(x.narrow(0, row, 1))[0], together[row])) << row;
      }
    }
  });
}

TEST(PackedLinear, ComputesPartsOfItsOutputs) {
  for (WeightFormat format : kFormats) {
    const Case c(5, 200, 32);
    const Product linear(c.weight, c.bias, format);
    const Tensor x = c.x.to(activation_type(format));
    EXPECT_TRUE(torch::equal(linear.part(x, 128, 72), linear.part(x, 0, 200).narrow(1, 128, 72)));
  }
}

TEST(PackedLinear, OfInt8StaysWithinTheBoundOfItsRounding) {
  const Case c(8, 100, 256);
  const Product linear(c.weight, c.bias, WeightFormat::kInt8);
  const Tensor exact = c.x.to(at::kDouble).matmul(c.weight.to(at::kDouble).t()) + c.bias;
  // Every number is off by half a step of its row at most: |x||dw| + |dx||w| + |dx||dw|.
  const Tensor dx = c.x.abs().amax(1, true) / 254, dw = c.weight.abs().amax(1, true) / 254;
  const Tensor bound = c.x.abs().sum(1, true).matmul(dw.t()) +
                       dx.matmul(c.weight.abs().sum(1, true).t()) + 256 * dx.matmul(dw.t());
  const Tensor error = (linear(c.x).to(at::kDouble) - exact).abs();
  EXPECT_TRUE((error <= bound + 1e-4).all().item<bool>());
  // And is far smaller on average, since roundings cancel.
  EXPECT_LT(error.mean().item<double>(), 0.2 * bound.mean().item<double>());
  EXPECT_GT(error.mean().item<double>(), 0);
}

TEST(PackedLinear, TakesRowsOfZerosAndTheLargestNumbers) {
  for (WeightFormat format : kFormats) {
    Case c(2, 64, 512);
    c.x.zero_();
    c.x[1].fill_(-3e4);
    c.weight.fill_(2);
    c.weight[7].zero_();
    const Tensor got =
        Product(c.weight, c.bias, format)(c.x.to(activation_type(format))).to(at::kFloat);
    EXPECT_NEAR(got[0][5].item<float>(), c.bias[5].item<float>(), 1e-2);
    EXPECT_NEAR(got[1][7].item<float>(), c.bias[7].item<float>(), 1e-2);
    EXPECT_NEAR(got[1][5].item<float>() / (-3e4 * 2 * 512), 1, 1e-2);
  }
}

TEST(PackedLinear, TakesTheBytesOfItsFormat) {
  const Case c(1, 128, 64);
  const int64_t bias = 128 * 4;
  EXPECT_EQ(Product(c.weight, c.bias, WeightFormat::kFp32).linear.bytes(), 128 * 64 * 4 + bias);
  EXPECT_EQ(Product(c.weight, c.bias, WeightFormat::kBf16).linear.bytes(), 128 * 64 * 2 + bias);
  EXPECT_EQ(Product(c.weight, c.bias, WeightFormat::kInt8).linear.bytes(), 128 * 64 + 3 * bias);
}

TEST(PackedLinear, GivesItsWeightsBack) {
  const Case c(1, 130, 33);
  for (WeightFormat format : kFormats) {
    const Product product(c.weight, c.bias, format);
    const auto [q, scale] = quantised(c.weight);
    const Tensor want =
        format == WeightFormat::kInt8 ? q * scale : c.weight.to(activation_type(format));
    for (int64_t output : {0, 63, 64, 129}) {
      const Tensor got = torch::empty({33});
      product.linear.weights_of(output, got.data_ptr<float>());
      EXPECT_TRUE(torch::equal(got, want[output].to(at::kFloat))) << output;
    }
  }
}

}  // namespace
}  // namespace lockstep
