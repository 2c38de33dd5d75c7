#include "metrics/perplexity.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

TEST(Perplexity, OfAUniformGuessIsTheNumberOfChoices) {
  EXPECT_DOUBLE_EQ(perplexity(0), 1);
  EXPECT_NEAR(perplexity(std::log(8000.0)), 8000, 1e-8);
}

TEST(Perplexity, StaysFiniteForAnAbsurdLossAndNotANumberForNone) {
  EXPECT_DOUBLE_EQ(perplexity(1e6), std::exp(80.0));
  EXPECT_DOUBLE_EQ(perplexity(std::numeric_limits<double>::infinity()), std::exp(80.0));
  EXPECT_TRUE(std::isnan(perplexity(std::nan(""))));
}

}  // namespace
}  // namespace lockstep
