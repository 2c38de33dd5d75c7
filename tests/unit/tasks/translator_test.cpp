#include "tasks/translator.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(PrecisionAsTrained, IsFp32WhereProductsOfBf16AreSlower) {
  Kernels fast = kernels(), slow = kernels();
  fast.fast_bf16 = true;
  slow.fast_bf16 = false;
  EXPECT_EQ(precision_as_trained("bf16", fast), "bf16");
  EXPECT_EQ(precision_as_trained("bf16", slow), "fp32");
  EXPECT_EQ(precision_as_trained("fp32", fast), "fp32");
  EXPECT_EQ(precision_as_trained("fp32", slow), "fp32");
}

}  // namespace
}  // namespace lockstep
