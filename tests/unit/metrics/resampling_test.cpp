#include "metrics/resampling.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "metrics/bleu.h"
#include "metrics/numpy_random.h"

namespace lockstep {
namespace {

TEST(NumpyRandom, GivesTheNumbersOfDefaultRng) {
  // numpy.random.default_rng(12345).integers(0, 2**64, 2, dtype=numpy.uint64)
  NumpyRandom random(12345);
  EXPECT_EQ(random.next64(), 4193609425186963869u);
  EXPECT_EQ(random.next64(), 5843160025838961886u);
  // numpy.random.default_rng(2**40 + 7).choice(1000, 12)
  NumpyRandom other((uint64_t{1} << 40) + 7);
  for (uint32_t expected : {206u, 829u, 609u, 255u, 17u, 153u, 504u, 674u, 885u, 738u, 94u, 489u})
    EXPECT_EQ(other.below(1000), expected);
  // numpy.random.default_rng(1).choice(3 * 2**30, 6): a third of the draws is rejected
  NumpyRandom large(1);
  for (uint32_t expected :
       {1524247487u, 1648692854u, 2432564812u, 3061657868u, 112267929u, 464370616u})
    EXPECT_EQ(large.below(3u << 30), expected);
  // numpy.random.default_rng(0).integers(2, size=40, dtype=bool)
  NumpyRandom third(0);
  NumpyCoins coins(third);
  std::string drawn;
  for (int i = 0; i < 40; ++i) drawn += coins.next() ? '1' : '0';
  EXPECT_EQ(drawn, "1111101001000001010000111001101111110011");
}

TEST(ResamplingSeed, IsANumberOrNone) {
  EXPECT_EQ(ResamplingSeed::parse("007", "X").value, 7u);
  EXPECT_EQ(ResamplingSeed::parse("007", "X").text, "007");
  EXPECT_EQ(ResamplingSeed::parse("None", "X").text, "none");
  for (const char* wrong : {"", "-1", "x", "1.5", "99999999999999999999"}) {
    EXPECT_THROW(ResamplingSeed::parse(wrong, "X"), ConfigError) << wrong;
  }
}

TEST(PairedTest, FindsNoDifferenceBetweenASystemAndItself) {
  std::vector<std::string> text{"the cat sat on the mat", "a dog", "and then it slept"};
  std::vector<std::string> other{"the cat sat on a mat", "the dog", "and then slept"};
  Bleu bleu;
  std::vector<double> statistics = bleu.statistics(text, {other}, 0, text.size());
  for (PairedTest test : {PairedTest::kBootstrap, PairedTest::kRandomization}) {
    std::vector<PairedResult> results =
        paired_test(bleu, {statistics, statistics}, {.test = test, .trials = 50});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_FALSE(results[0].p_value);
    EXPECT_EQ(results[0].score, results[1].score);
    EXPECT_GT(*results[1].p_value, 0);
    EXPECT_LE(*results[1].p_value, 1);
  }
}

}  // namespace
}  // namespace lockstep
