#include "nn/pooling.h"

#include "op_testing.h"

namespace lockstep {
namespace {

torch::Tensor images(std::vector<int64_t> shape) {
  return random_tensor(std::move(shape), 3).contiguous(at::MemoryFormat::ChannelsLast);
}

TEST(Pooling, FusedEqualsPlain) {
  Operation mean = [](const std::vector<torch::Tensor>& x, const Numerics& numerics) {
    return average_pool(x[0], numerics);
  };
  for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{2, 64, 8, 8}, {1, 5, 7, 9}, {3, 70, 1, 1}, {2, 128, 2, 5}}) {
      const torch::Tensor x = images(shape).to(compute);
      expect_fused_equals_plain(mean, {x}, nullptr, compute, {1e-6, 1e-2});
    }
  }
}

TEST(Pooling, PaddingNeverWinsAndHalvesRoundUp) {
  const torch::Tensor x =
      torch::full({1, 3, 5, 4}, -1.0F).contiguous(at::MemoryFormat::ChannelsLast);
  const torch::Tensor y = max_pool(x, {});
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{1, 3, 3, 2}));
  EXPECT_EQ(y.max().item<float>(), -1);
}

}  // namespace
}  // namespace lockstep
