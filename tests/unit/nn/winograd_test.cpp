#include "nn/winograd.h"

#include "nn/convolution.h"
#include "nn/fused.h"
#include "nn/own_product.h"
#include "op_testing.h"

namespace lockstep {
namespace {

struct ImageShape {
  int64_t images, inputs, outputs, height, width;
};
// Squares that fill the image, that reach beyond it on both sides, one that is larger than it; more
// than a block of squares, few squares of many channels.
const std::array<ImageShape, 6> kImageShapes = {{{1, 64, 64, 4, 4},
                                                 {3, 64, 128, 9, 7},
                                                 {2, 128, 64, 8, 30},
                                                 {1, 64, 64, 1, 3},
                                                 {5, 64, 64, 28, 28},
                                                 {2, 320, 256, 7, 7}}};

// In fp32 up to 3e-6 of the largest result is seen, where plain sums are off by 1e-6. In bf16 both
// sides are rounded after their transformation: noise of up to 1.3 % of a result's norm.
void expect_close(const torch::Tensor& actual, const torch::Tensor& expected, at::ScalarType type) {
  if (type == at::kFloat) EXPECT_TENSORS_CLOSE(actual, expected, 6e-6);
  EXPECT_LE(relative_norm(actual, expected), 1.5e-2);
}

struct Data {
  torch::Tensor x, weight, d_y;
  torch::Tensor y, d_x, d_weight;  // by libtorch in fp64

  Data(const ImageShape& shape, at::ScalarType type) {
    x = detail::channels_last(
            random_tensor({shape.images, shape.inputs, shape.height, shape.width}, 1))
            .to(type);
    weight = random_tensor({shape.outputs, shape.inputs, 3, 3}, 2, type);
    d_y = detail::channels_last(
              random_tensor({shape.images, shape.outputs, shape.height, shape.width}, 3))
              .to(type);
    torch::Tensor x64 = x.to(at::kDouble).set_requires_grad(true);
    torch::Tensor weight64 = weight.to(at::kDouble).set_requires_grad(true);
    torch::Tensor y64 = at::conv2d(x64, weight64, {}, 1, 1);
    y64.backward(d_y.to(at::kDouble));
    y = y64.detach().to(type);
    d_x = x64.grad().to(type);
    d_weight = weight64.grad();
  }
};

template <class F>
void for_each_case(const F& f) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const ImageShape& shape : kImageShapes) {
      SCOPED_TRACE(fmt::format("{} images of {} x {}, {} -> {}, {}", shape.images, shape.height,
                               shape.width, shape.inputs, shape.outputs, toString(type)));
      const Data data(shape, type);
      for_each_isa([&] { f(data, type); });
    }
  }
}

TEST(Winograd, ConvolvesAsLibtorchInDouble) {
  for_each_case([](const Data& data, at::ScalarType type) {
    for (int threads : {1, 3}) {
      Threads scope(threads);
      expect_close(detail::winograd_convolve(data.x, data.weight, nullptr), data.y, type);
      expect_close(detail::winograd_convolve_backward(data.d_y, data.weight, {}), data.d_x, type);
      const torch::Tensor before =
          detail::channels_last(random_tensor(data.d_x.sizes().vec(), 4)).to(type);
      const torch::Tensor into = before.clone();
      detail::winograd_convolve_backward(data.d_y, data.weight, into);
      expect_close(into, before + data.d_x, type);
    }
  });
}

TEST(Winograd, AddsTheGradientOfTheWeight) {
  for_each_case([](const Data& data, at::ScalarType type) {
    torch::Tensor with_one;
    for (int threads : {1, 3}) {
      Threads scope(threads);
      const torch::Tensor gradient = torch::ones(data.weight.sizes());
      detail::add_winograd_gradient(gradient, data.d_y, data.x);
      expect_close(gradient - 1, data.d_weight.to(at::kFloat), type);
      if (threads == 1) with_one = gradient;
      EXPECT_TRUE(torch::equal(gradient, with_one));
    }
  });
}

TEST(Winograd, MeasuresWhatItStores) {
  for_each_case([](const Data& data, at::ScalarType) {
    detail::PixelSums sums;
    const torch::Tensor y = detail::winograd_convolve(data.x, data.weight, &sums);
    const torch::Tensor rows = detail::pixel_rows(y).to(at::kDouble);
    ASSERT_EQ(sums.values.size(1), static_cast<int64_t>(sums.count.size()));
    torch::Tensor total = torch::zeros({y.size(1)}, at::kDouble), squares = total.clone();
    double pixels = 0;
    for (std::size_t block = 0; block < sums.count.size(); ++block) {
      const auto count = static_cast<double>(sums.count[block]);
      const torch::Tensor own = sums.values.select(1, static_cast<int64_t>(block)).to(at::kDouble);
      total += own[0] * count + own[1];
      squares += own[2] + 2 * own[0] * own[1] + own[0] * own[0] * count;
      pixels += count;
    }
    EXPECT_EQ(pixels, static_cast<double>(rows.size(0)));
    // Sums of up to 1,024 distances from the first value in fp32, of which most cancels.
    EXPECT_TENSORS_CLOSE(total, rows.sum(0), 5e-5);
    EXPECT_TENSORS_CLOSE(squares, rows.square().sum(0), 1e-5);
  });
}

TEST(Winograd, IsTakenForSquareKernelsWithoutStrideOnly) {
  TestParameters p({{64, 64, 3, 3}, {64, 32, 3, 3}, {64, 64, 1, 1}, {512, 512, 3, 3}});
  auto images = [](const Convolution& convolution, int64_t size, at::ScalarType type) {
    return torch::empty({1, convolution.inputs(), size, size}, type);
  };
  auto takes = [&](const Convolution& convolution, int64_t size, at::ScalarType type) {
    return detail::takes_winograd(convolution, images(convolution, size, type));
  };
  auto takes_gradient = [&](const Convolution& convolution, int64_t size, at::ScalarType type) {
    return detail::takes_winograd_gradient(convolution, images(convolution, size, type));
  };
  for_each_isa([&] {
    const std::string isa = kernels().isa;
    const bool can = isa != "generic" && isa != "neon_dot";
    const bool can_round = detail::own_gradients_pay(at::kBFloat16);
    const bool takes_few = detail::own_gradients_pay(at::kFloat);
    for (const ParameterRef& square : {p[0], p[3]}) {
      const Convolution same{square, 1, 1};
      EXPECT_EQ(takes(same, 32, at::kFloat), can);  // 64 squares of 4 x 4
      EXPECT_EQ(takes(same, 28, at::kFloat), takes_few);
      EXPECT_EQ(takes(same, 16, at::kFloat), takes_few);
      EXPECT_FALSE(takes(same, 12, at::kFloat));  // 9 squares
      EXPECT_EQ(takes(same, 24, at::kBFloat16), can_round);
      EXPECT_FALSE(takes(same, 20, at::kBFloat16));  // 25 squares
      EXPECT_EQ(takes_gradient(same, 16, at::kFloat), can);
      EXPECT_FALSE(takes_gradient(same, 12, at::kFloat));
      EXPECT_EQ(takes_gradient(same, 24, at::kBFloat16), can_round);
      EXPECT_FALSE(takes_gradient(same, 20, at::kBFloat16));
    }
    for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      EXPECT_FALSE(takes({p[0], 2, 1}, 32, type));
      EXPECT_FALSE(takes({p[0], 1, 0}, 32, type));
      EXPECT_FALSE(takes({p[1], 1, 1}, 32, type));
      EXPECT_FALSE(takes({p[2], 1, 0}, 32, type));
      EXPECT_FALSE(takes({p[0], 1, 1}, 0, type));
    }
    EXPECT_FALSE(takes({p[0], 1, 1}, 32, at::kHalf));
  });
}

}  // namespace
}  // namespace lockstep
