#include "nn/segments.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Segments, PadAndPackAreInverse) {
  Segments segments = make_segments({3, 1, 2}, torch::kCPU);
  EXPECT_EQ(segments.sentences(), 3);
  EXPECT_EQ(segments.tokens(), 6);
  EXPECT_EQ(segments.longest, 3);
  torch::Tensor packed = torch::arange(12, torch::kFloat).view({6, 2}) + 1;
  torch::Tensor padded = pad_segments(packed, segments);
  EXPECT_EQ(padded.sizes(), (std::vector<int64_t>{3, 3, 2}));
  EXPECT_TRUE(torch::equal(padded[1][0], packed[3]));
  EXPECT_EQ(padded[1][1].abs().sum().item<float>(), 0);
  EXPECT_TRUE(torch::equal(pack_segments(padded, segments), packed));
  torch::Tensor mask = segment_mask(segments, torch::kCPU);
  EXPECT_TRUE(torch::equal(mask.sum(1), torch::tensor({int64_t{3}, int64_t{1}, int64_t{2}})));
  EXPECT_TRUE(torch::equal(padded.abs().sum(2) > 0, mask));
}

TEST(Segments, RefusesAnEmptySentence) {
  EXPECT_THROW(make_segments({2, 0}, torch::kCPU), c10::Error);
}

}  // namespace
}  // namespace lockstep
