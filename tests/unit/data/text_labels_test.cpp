#include "data/labelled/text_labels.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;
using Numbers = std::vector<int32_t>;

TEST(ClassNumbers, LearnsAndSortsByBytes) {
  ClassNumbers classes({});
  EXPECT_EQ(classes.of("pos", "a:1"), 0);
  EXPECT_EQ(classes.of("neg", "a:2"), 1);
  EXPECT_EQ(classes.of("pos", "a:3"), 0);
  EXPECT_EQ(classes.settle(), (Numbers{1, 0}));
  EXPECT_EQ(classes.classes(), (Names{"neg", "pos"}));
  EXPECT_EQ(classes.of("pos", "b:1"), 1);
  EXPECT_ERROR(classes.of("po", "b.csv:2"), DataError,
               "b.csv:2: label \"po\" is none of the 2 classes; did you mean pos? (neg, pos)");
}

TEST(ClassNumbers, SortsWholeNumbersByValue) {
  ClassNumbers classes({});
  for (const char* label : {"10", "9", "-1"}) classes.of(label, "a:1");
  classes.settle();
  EXPECT_EQ(classes.classes(), (Names{"-1", "9", "10"}));
  EXPECT_TRUE(classes.knows("-1"));
  EXPECT_ERROR(classes.of("0", "a:4"), DataError, "label \"0\" is none of the 3 classes");
}

TEST(ClassNumbers, TakesNamesOrNumbersOfGivenClasses) {
  ClassNumbers classes({"world", "sports"});
  EXPECT_FALSE(classes.learning());
  EXPECT_EQ(classes.of("sports", "a:1"), 1);
  EXPECT_EQ(classes.of("0", "a:2"), 0);
  EXPECT_ERROR(classes.of("2", "a:3"), DataError, "count from 0");
  EXPECT_ERROR(classes.of("-1", "a:4"), DataError, "a:4: label \"-1\"");
  EXPECT_EQ(classes.settle(), (Numbers{0, 1}));
  EXPECT_THROW(ClassNumbers({"a", "a"}), ConfigError);
}

TEST(ClassNumbers, GivenNumbersAreNames) {
  ClassNumbers classes({"1", "2"});
  EXPECT_EQ(classes.of("1", "a:1"), 0);
  EXPECT_FALSE(classes.knows("0"));
}

TEST(ClassNumbers, NeedsALabel) {
  ClassNumbers classes({});
  EXPECT_ERROR(classes.of(" ", "a.csv:7"), DataError, "a.csv:7: an empty label");
}

TEST(Values, AreFiniteNumbers) {
  EXPECT_EQ(parse_value(" 2.5 ", "a:1"), 2.5f);
  EXPECT_EQ(parse_value("-1e2", "a:1"), -100.0f);
  for (const char* wrong : {"", "x", "1x", "nan", "inf", "1e60"}) {
    EXPECT_ERROR(parse_value(wrong, "a.tsv:5"), DataError, "a.tsv:5: label");
  }
}

}  // namespace
}  // namespace lockstep
