#include "tasks/candidates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/isa.h"

namespace lockstep {
namespace {

using torch::Tensor;

TEST(Candidates, AreTheSameWithOurKernelsAsWithTorch) {
  at::Generator generator = at::detail::createCPUGenerator(1);
  for (const char* isa : {"generic", "avx2", "avx512"}) {
    const Kernels* table = kernels_for(isa);
    if (table == nullptr) continue;
    use_kernels(table);
    for (int64_t vocabulary : {5, 63, 64, 65, 1000, 6007}) {
      for (int64_t per_row : {1, 2, 5}) {
        const Tensor logits = torch::empty({7, vocabulary}).normal_(0, 4, generator);
        const std::vector<int32_t> excluded{0, 3};
        const Candidates plain =
            best_candidates(logits.clone(), per_row, excluded, {at::kFloat, false});
        const Candidates fused =
            best_candidates(logits.clone(), per_row, excluded, {at::kFloat, true});
        ASSERT_EQ(plain.per_row, fused.per_row);
        for (std::size_t i = 0; i < plain.id.size(); ++i) {
          if (!std::isfinite(plain.log_probability[i])) {
            EXPECT_EQ(fused.log_probability[i], plain.log_probability[i]);
            continue;
          }
          EXPECT_EQ(fused.id[i], plain.id[i]) << isa << " vocabulary " << vocabulary;
          // fp32 sums of thousands of terms in another order.
          EXPECT_NEAR(fused.log_probability[i], plain.log_probability[i], 1e-5);
        }
      }
    }
  }
  use_kernels(nullptr);
}

TEST(Candidates, TakeEqualLogitsInOrderOfTheirIds) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensor logits = torch::zeros({2, 300}, type);
    logits[0][200] = 1;
    const Candidates got = best_candidates(logits, 4, {0, 2}, {type, true});
    EXPECT_EQ(got.id, (std::vector<int32_t>{200, 1, 3, 4, 1, 3, 4, 5}));
    EXPECT_NEAR(got.log_probability[4], -std::log(300.0), 1e-5);
  }
}

TEST(Candidates, AreNormalisedInFp32WhenLogitsAreBfloat16) {
  at::Generator generator = at::detail::createCPUGenerator(2);
  const Tensor logits = torch::empty({3, 500}).normal_(0, 4, generator).to(at::kBFloat16);
  const Tensor exact = logits.to(at::kDouble).log_softmax(1);
  const Candidates got = best_candidates(logits.clone(), 3, {}, {at::kBFloat16, true});
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t i = 0; i < 3; ++i) {
      const std::size_t at = static_cast<std::size_t>(row * 3 + i);
      EXPECT_NEAR(got.log_probability[at], exact[row][got.id[at]].item<double>(), 1e-5);
    }
  }
}

}  // namespace
}  // namespace lockstep
