#include "metrics/confusion.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

Confusion animals() {
  Confusion c({"bird", "cat", "dog"});
  c.at(0, 0) = 8;
  c.at(0, 1) = 2;
  c.at(1, 1) = 5;
  c.at(1, 2) = 5;
  return c;  // no dog was seen
}

TEST(Confusion, GivesRecallAndPrecisionByClass) {
  const Confusion c = animals();
  EXPECT_EQ(class_score(c, 0).items, 10);
  EXPECT_DOUBLE_EQ(class_score(c, 0).recall, 0.8);
  EXPECT_DOUBLE_EQ(class_score(c, 0).precision, 1);
  EXPECT_DOUBLE_EQ(class_score(c, 1).precision, 5.0 / 7);
  EXPECT_EQ(class_score(c, 2).items, 0);
  EXPECT_DOUBLE_EQ(class_score(c, 2).recall, 0);
}

TEST(Confusion, NamesTheMostFrequentMistakesFirst) {
  const auto mistakes = frequent_mistakes(animals(), 5);
  ASSERT_EQ(mistakes.size(), 2u);
  EXPECT_EQ(mistakes[0].label, 1);
  EXPECT_EQ(mistakes[0].taken_for, 2);
  EXPECT_EQ(mistakes[0].items, 5);
  EXPECT_EQ(frequent_mistakes(animals(), 1).size(), 1u);
}

}  // namespace
}  // namespace lockstep
