#include "models/candidates.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "support/instruction_sets.h"

namespace lockstep {
namespace {

using torch::Tensor;

// A table and outputs of a decoder, whose logits are of the size of a trained network's.
struct Output {
  Output(int64_t rows, int64_t vocabulary, uint64_t seed) {
    at::Generator generator = at::detail::createCPUGenerator(seed);
    table = torch::empty({vocabulary, 16}).normal_(0, 1, generator);
    x = torch::empty({rows, 16}).normal_(0, 1, generator);
  }
  Tensor logits() const { return x.matmul(table.t()); }
  Tensor table, x;
};

Candidates packed_candidates(const Output& output, int64_t per_row,
                             const std::vector<int32_t>& excluded) {
  const OneThread threads;
  const Tensor& weight = output.table;
  const PackedLinear table({weight.data_ptr<float>(), nullptr, weight.size(0), weight.size(1)},
                           WeightFormat::kFp32, threads);
  PackedInput x;
  table.prepare(output.x.data_ptr<float>(), output.x.size(0), x, threads);
  return best_candidates(table, x, per_row, excluded, threads);
}

TEST(Candidates, OfAPackedTableAreThoseOfItsLogits) {
  for_each_isa([] {
    for (int64_t vocabulary : {5, 63, 64, 65, 1000, 6007}) {
      for (int64_t rows : {1, 7, 300}) {
        const Output output(rows, vocabulary, 1);
        const std::vector<int32_t> excluded{0, 3};
        const int64_t per_row = rows == 7 ? 1 : 5;
        const Candidates plain = best_candidates(output.logits(), per_row, excluded);
        const Candidates packed = packed_candidates(output, per_row, excluded);
        ASSERT_EQ(plain.per_row, packed.per_row);
        for (std::size_t i = 0; i < plain.id.size(); ++i) {
          if (!std::isfinite(plain.log_probability[i])) {
            EXPECT_EQ(packed.log_probability[i], plain.log_probability[i]);
            continue;
          }
          EXPECT_EQ(packed.id[i], plain.id[i]) << "vocabulary " << vocabulary;
          // fp32 sums of thousands of terms in another order.
          EXPECT_NEAR(packed.log_probability[i], plain.log_probability[i], 2e-5);
        }
      }
    }
  });
}

TEST(Candidates, TakeEqualLogitsInOrderOfTheirIds) {
  Output output(2, 300, 1);
  output.table.zero_();
  output.x.zero_();
  output.x[0][0] = 1;
  output.table[200][0] = 1;
  const Candidates got = packed_candidates(output, 4, {0, 2});
  EXPECT_EQ(got.id, (std::vector<int32_t>{200, 1, 3, 4, 1, 3, 4, 5}));
  EXPECT_NEAR(got.log_probability[4], -std::log(300.0), 1e-5);
}

TEST(Candidates, SurviveLogitsFarApart) {
  Output output(1, 200, 1);
  output.table.zero_();
  output.x.fill_(1);
  output.table[150].fill_(20);  // a logit of 320, all else 0
  output.table[10].fill_(-30);
  const Candidates got = packed_candidates(output, 2, {});
  EXPECT_EQ(got.id, (std::vector<int32_t>{150, 0}));
  EXPECT_NEAR(got.log_probability[0], 0, 1e-6);
  EXPECT_NEAR(got.log_probability[1], -320, 1e-3);
}

}  // namespace
}  // namespace lockstep
