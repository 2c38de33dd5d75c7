// Sums of arrays (kernels/sum_isa.cpp) against libtorch, for every instruction set of this machine.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <bit>
#include <vector>

#include "kernels/kernel_table.h"

namespace lockstep {
namespace {

struct Case {
  torch::ScalarType type, wide;
  SumFunction SumKernels::*sum;
};
const std::vector<Case> kCases{
    {torch::kFloat32, torch::kFloat32, &SumKernels::fp32},
    {torch::kFloat64, torch::kFloat64, &SumKernels::fp64},
    {torch::kFloat16, torch::kFloat32, &SumKernels::fp16},
    {torch::kBFloat16, torch::kFloat32, &SumKernels::bf16},
    {torch::kInt64, torch::kInt64, &SumKernels::int64},
};

// In pairs of neighbours, as kernel_table.h says.
torch::Tensor sum_of(const std::vector<torch::Tensor>& arrays, std::size_t first, std::size_t count,
                     torch::ScalarType wide) {
  if (count == 1) return arrays[first].to(wide);
  const std::size_t half = std::bit_floor(count - 1);
  return sum_of(arrays, first, half, wide) + sum_of(arrays, first + half, count - half, wide);
}

// The arrays lie one element off any alignment.
void expect_sum(const Case& c, SumFunction sum, int64_t count, int64_t n) {
  std::vector<torch::Tensor> arrays;
  std::vector<const void*> inputs;
  for (int64_t i = 0; i < count; ++i) {
    arrays.push_back((torch::randn({n + 1}) * 1000).to(c.type).narrow(0, 1, n));
    inputs.push_back(arrays.back().data_ptr());
  }
  const torch::Tensor expected = sum_of(arrays, 0, arrays.size(), c.wide);
  torch::Tensor apart = torch::empty({n}, c.type);
  sum(inputs.data(), count, apart.data_ptr(), n);
  EXPECT_TRUE(torch::equal(apart, expected.to(c.type))) << c.type << " " << count << " x " << n;
  sum(inputs.data(), count, arrays.back().data_ptr(), n);  // in place
  EXPECT_TRUE(torch::equal(arrays.back(), apart)) << c.type << " " << count << " x " << n;
}

TEST(Sum, AddsInPairsWithOneRounding) {
  torch::manual_seed(5);
  for (const char* isa : {"generic", "avx2", "avx512"}) {
    const Kernels* table = kernels_for(isa);
    if (table == nullptr) continue;
    SCOPED_TRACE(isa);
    for (const Case& c : kCases) {
      for (int64_t count : {1, 2, 3, 4, 5, 7, 8, 13}) {
        for (int64_t n : {0, 1, 7, 511, 513, 2000}) expect_sum(c, table->sum.*c.sum, count, n);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
