#include "nn/dropout.h"

#include "op_testing.h"

namespace lockstep {
namespace {

TEST(Dropout, KeepsTheShareThatItPromises) {
  torch::Tensor mask = dropout_mask(test_dropout(0.1, 400), 1000);
  double kept = mask.to(torch::kDouble).mean().item<double>();
  EXPECT_NEAR(kept, 0.9, 0.0024);  // 5 standard deviations of 400,000 draws
  torch::Tensor by_column = mask.to(torch::kDouble).mean(0),
                by_row = mask.to(torch::kDouble).mean(1);
  EXPECT_LT((by_column - 0.9).abs().max().item<double>(), 0.09);  // 6 of 400 draws
  EXPECT_LT((by_row - 0.9).abs().max().item<double>(), 0.06);     // 6 of 1000 draws
}

TEST(Dropout, DrawsNeighboursIndependently) {
  torch::Tensor x = dropout_mask(test_dropout(0.5, 600), 600).to(torch::kDouble) * 2 - 1;
  auto correlation = [](const torch::Tensor& a, const torch::Tensor& b) {
    return (a * b).mean().item<double>();
  };
  const double limit = 5.0 / 600;  // 5 standard deviations of the mean of 600 * 600 products
  for (int64_t lag = 1; lag <= 4; ++lag) {
    EXPECT_NEAR(correlation(x.narrow(1, 0, 600 - lag), x.narrow(1, lag, 600 - lag)), 0, limit);
    EXPECT_NEAR(correlation(x.narrow(0, 0, 600 - lag), x.narrow(0, lag, 600 - lag)), 0, limit);
  }
}

TEST(Dropout, DependsOnSeedStepSiteAndRowOnly) {
  Dropout a = test_dropout(0.5, 16);
  EXPECT_TRUE(torch::equal(dropout_mask(a, 64), dropout_mask(a, 64)));
  EXPECT_TRUE(torch::equal(dropout_mask(a, 64), dropout_mask(a, 101).narrow(1, 0, 64)));
  for (uint64_t key : {dropout_key(8, 11, 3), dropout_key(7, 12, 3), dropout_key(7, 11, 4)}) {
    Dropout b = a;
    b.key = key;
    EXPECT_FALSE(torch::equal(dropout_mask(a, 64), dropout_mask(b, 64)));
  }
  Dropout reversed = a;
  reversed.rows = a.rows.flip(0).contiguous();
  EXPECT_TRUE(torch::equal(dropout_mask(reversed, 64), dropout_mask(a, 64).flip(0)));
}

}  // namespace
}  // namespace lockstep
