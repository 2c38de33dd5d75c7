#include "report/draw/ticks.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Numbers = std::vector<double>;
using Words = std::vector<std::string>;

TEST(Ticks, EncloseTheValuesInSteps1Or2Or5) {
  EXPECT_EQ(linear_ticks(0, 9.3, 5).at, (Numbers{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(linear_ticks(0.12, 0.31, 4).labels,
            (Words{"0.10", "0.15", "0.20", "0.25", "0.30", "0.35"}));
  EXPECT_EQ(linear_ticks(-30, 80, 5).at, (Numbers{-50, -25, 0, 25, 50, 75, 100}));
  EXPECT_EQ(linear_ticks(0, 2500, 5).labels, (Words{"0", "500", "1000", "1500", "2000", "2500"}));
  EXPECT_EQ(linear_ticks(0, 40000, 4).labels, (Words{"0", "10,000", "20,000", "30,000", "40,000"}));
}

TEST(Ticks, OneValueGetsRoomOnBothSides) {
  const Ticks ticks = linear_ticks(5, 5, 4);
  EXPECT_LT(ticks.at.front(), 5);
  EXPECT_GT(ticks.at.back(), 5);
  EXPECT_GE(linear_ticks(0, 0, 4).at.size(), 2u);
}

TEST(Ticks, WholeOnesAreWhole) {
  EXPECT_EQ(whole_ticks(0, 3, 10).at, (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(whole_ticks(0, 25, 10).at, (Numbers{0, 5, 10, 15, 20, 25}));
}

TEST(Ticks, LogarithmicOnesArePowersOfTen) {
  EXPECT_EQ(log_ticks(0.5, 2e4).labels,
            (Words{"0.1", "1", "10", "100", "1000", "10,000", "100,000"}));
  EXPECT_EQ(log_ticks(3, 40).at, (Numbers{2, 5, 10, 20, 50}));
}

TEST(Ticks, LabelsTellNeighboursApart) {
  EXPECT_EQ(tick_labels({1, 4, 16}), (Words{"1", "4", "16"}));
  EXPECT_EQ(tick_labels({2e-5, 2e-4}), (Words{"2e-05", "2e-04"}));
  EXPECT_EQ(tick_labels({0, 0.25, 0.5}), (Words{"0.00", "0.25", "0.50"}));
}

}  // namespace
}  // namespace lockstep
