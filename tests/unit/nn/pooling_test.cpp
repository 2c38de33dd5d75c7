#include "nn/pooling.h"

#include "op_testing.h"

namespace lockstep {
namespace {

torch::Tensor images(std::vector<int64_t> shape) {
  return random_tensor(std::move(shape), 3).contiguous(at::MemoryFormat::ChannelsLast);
}

TEST(Pooling, FusedEqualsPlain) {
  Operation largest = [](const std::vector<torch::Tensor>& x, const Numerics& numerics) {
    return max_pool(x[0], numerics);
  };
  Operation mean = [](const std::vector<torch::Tensor>& x, const Numerics& numerics) {
    return average_pool(x[0], numerics);
  };
  for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{2, 64, 8, 8}, {1, 5, 7, 9}, {3, 70, 1, 1}, {2, 128, 2, 5}}) {
      // In bf16 several of nine numbers are often equal: the same one must be chosen.
      const torch::Tensor x = images(shape).to(compute);
      expect_fused_equals_plain(largest, {x}, nullptr, compute, {1e-6, 1e-2});
      expect_fused_equals_plain(mean, {x}, nullptr, compute, {1e-6, 1e-2});
    }
  }
}

TEST(Pooling, ANaNIsTheLargest) {
  torch::Tensor x = images({1, 3, 4, 4});
  x[0][1][1][2] = std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor y = max_pool(x, {});
  const torch::Tensor plain = max_pool(x, {at::kFloat, false});
  EXPECT_TRUE(torch::equal(y.isnan(), plain.isnan()));
  EXPECT_TRUE(plain.isnan().any().item<bool>());
}

}  // namespace
}  // namespace lockstep
