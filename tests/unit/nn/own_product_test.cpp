#include "nn/own_product.h"

#include "nn/product.h"
#include "op_testing.h"

namespace lockstep {
namespace {

struct Shape {
  int64_t rows, inputs, outputs;
};
// One output, part of a panel, panels and a part; fewer groups than a vector has lanes, no multiple
// of them; rows that fill no tile, and more than a thread packs of a gradient at once; more inputs
// than a panel may have, wide or narrow, not a whole number of chunks; more weights than are packed
// at once.
constexpr std::array<Shape, 11> kShapes = {{{1, 2, 1},
                                            {7, 6, 17},
                                            {33, 64, 64},
                                            {70, 36, 130},
                                            {65, 98, 200},
                                            {100, 256, 96},
                                            {2100, 34, 64},
                                            {4501, 64, 70},
                                            {40, 9250, 72},
                                            {50, 1500, 40},
                                            {70, 130, 33000}}};

torch::Tensor exact(const torch::Tensor& a, const torch::Tensor& b) {
  return at::mm(a.to(at::kDouble), b.to(at::kDouble));
}

std::string text(const Shape& shape, at::ScalarType type) {
  return fmt::format("{} rows, {} -> {}, {}", shape.rows, shape.inputs, shape.outputs,
                     toString(type));
}

// Sums of up to 4,501 products in fp32; in bf16 the result is rounded, half of 2^-8 at most.
double tolerance(at::ScalarType type) { return type == at::kFloat ? 2e-6 : 4e-3; }

TEST(OwnProduct, EqualsTheExactProduct) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(text(shape, type));
      const torch::Tensor x = random_tensor({shape.rows, shape.inputs}, 1, type);
      const torch::Tensor weight = random_tensor({shape.outputs, shape.inputs}, 2, type);
      const torch::Tensor turned = weight.t().contiguous();
      const torch::Tensor expected = exact(x, weight.t()).to(type);
      const torch::Tensor before = random_tensor({shape.rows, shape.outputs}, 4, type);
      const torch::Tensor with_before = (exact(x, weight.t()) + before).to(type);
      for_each_isa([&] {
        for (int threads : {1, 3}) {
          Threads scope(threads);
          EXPECT_TENSORS_CLOSE(detail::own_product_transposed(x, weight), expected,
                               tolerance(type));
          EXPECT_TENSORS_CLOSE(detail::own_product(x, turned), expected, tolerance(type));
          const torch::Tensor into = before.clone();
          detail::own_product(x, turned, into);
          EXPECT_TENSORS_CLOSE(into, with_before, tolerance(type));
        }
      });
    }
  }
}

TEST(OwnProduct, TheGradientIsAddedUnrounded) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(text(shape, type));
      const torch::Tensor x = random_tensor({shape.rows, shape.inputs}, 1, type);
      const torch::Tensor d_y = random_tensor({shape.rows, shape.outputs}, 2, type);
      const torch::Tensor before = random_tensor({shape.outputs, shape.inputs}, 3);
      const torch::Tensor expected = (exact(d_y.t(), x) + before).to(at::kFloat);
      for_each_isa([&] {
        torch::Tensor with_one;
        for (int threads : {1, 3}) {
          Threads scope(threads);
          const torch::Tensor gradient = before.clone();
          detail::add_own_weight_gradient(gradient, d_y, x);
          EXPECT_TENSORS_CLOSE(gradient, expected, 2e-6);
          if (threads == 1) with_one = gradient;
          EXPECT_TRUE(torch::equal(gradient, with_one));
        }
      });
    }
  }
}

TEST(OwnProduct, ARowDoesNotDependOnTheOthersNorOnThreads) {
  const torch::Tensor x = random_tensor({200, 96}, 1, at::kBFloat16);
  const torch::Tensor weight = random_tensor({130, 96}, 2, at::kBFloat16);
  const torch::Tensor all = detail::own_product_transposed(x, weight);
  Threads scope(3);
  EXPECT_TRUE(torch::equal(detail::own_product_transposed(x, weight), all));
  EXPECT_TRUE(torch::equal(detail::own_product_transposed(x.narrow(0, 37, 50).contiguous(), weight),
                           all.narrow(0, 37, 50)));
}

// What is not a number, or too large, comes out as libtorch has it.
TEST(OwnProduct, InfinityAndNanPassThrough) {
  torch::Tensor x = torch::ones({64, 64});
  x[3][5] = std::numeric_limits<float>::infinity();
  x[4][6] = std::nanf("");
  for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const torch::Tensor used = x.to(type), weight = torch::ones({64, 64}, type);
    for_each_isa([&] {
      const torch::Tensor y = detail::own_product_transposed(used, weight).to(at::kFloat);
      EXPECT_TRUE(y[3].isinf().all().item<bool>());
      EXPECT_TRUE(y[4].isnan().all().item<bool>());
      EXPECT_TRUE(y.narrow(0, 5, 59).eq(64).all().item<bool>());
    });
  }
}

TEST(OwnProduct, IsTakenWhereItWasMeasuredToPay) {
  const torch::Tensor fp32 = torch::zeros({64, 64}), bf16 = fp32.to(at::kBFloat16);
  const torch::Tensor table = torch::empty({66000, 64});
  for_each_isa([&] {
    const std::string isa = kernels().isa;
    const bool is_dot = isa == "avx512_dot";
    EXPECT_LE(detail::own_products_pay(at::kFloat), isa == "avx2" || isa == "avx512" || is_dot);
    EXPECT_LE(detail::own_gradients_pay(at::kFloat), isa == "avx512" || is_dot);
    EXPECT_LE(detail::own_products_pay(at::kBFloat16), is_dot);
    EXPECT_LE(detail::own_gradients_pay(at::kBFloat16), is_dot);
    EXPECT_FALSE(detail::own_products_pay(at::kHalf));
    EXPECT_FALSE(detail::own_gradients_pay(at::kHalf));
    for (const torch::Tensor& x : {fp32, bf16}) {
      const bool pays = detail::own_products_pay(x.scalar_type());
      EXPECT_EQ(detail::takes_own_product(x, x), pays);
      EXPECT_FALSE(detail::takes_own_product(x.narrow(0, 0, 4), x));
      EXPECT_FALSE(detail::takes_own_product(x, x.t().narrow(1, 0, 33)));
      EXPECT_FALSE(detail::takes_own_product(x, table));
    }
    EXPECT_FALSE(detail::takes_own_product(torch::empty({64, 63}, at::kBFloat16), bf16));
    const torch::Tensor long_weight = torch::empty({256, 64}, at::kBFloat16);  // of short sums
    EXPECT_FALSE(detail::takes_own_product(bf16, long_weight));
    EXPECT_EQ(detail::takes_own_weight_gradient(bf16, long_weight.to(at::kFloat)),
              detail::own_gradients_pay(at::kBFloat16));
  });
}

}  // namespace
}  // namespace lockstep
