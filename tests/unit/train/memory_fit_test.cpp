#include "train/parts/memory_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

TEST(MemoryFit, FindsTheLargestLoadToOnePartIn16) {
  for (int64_t base : {0, 1000, 500000}) {
    for (int64_t slope : {1, 7, 300}) {
      for (int64_t limit : {600000, 1000000, 50000000}) {
        int64_t exact = (limit - base) / slope;
        int64_t most = 4096;
        int64_t largest_tried = 0;
        auto peak = [&](int64_t load) {
          largest_tried = std::max(largest_tried, load);
          return base + slope * load;
        };
        int64_t found = largest_load_that_fits(peak, {.least = 64, .most = most}, limit);
        int64_t expected = std::min(most, exact);
        EXPECT_LE(found, expected);
        EXPECT_GE(found * 17 + 17, expected * 16) << base << " " << slope << " " << limit;
        EXPECT_LE(largest_tried, std::max<int64_t>(64, expected * 17 / 16 + 1))
            << "a trial far beyond the limit may kill the process";
      }
    }
  }
}

TEST(MemoryFit, TriesNothingFarBeyondTheLimitWhenMemoryGrowsInSteps) {
  auto peak = [](int64_t load) { return (load + 255) / 256 * 1000000; };
  int64_t found = largest_load_that_fits(peak, {.least = 64, .most = 100000}, 5500000);
  EXPECT_LE(found, 1280);
  EXPECT_GE(found, 1180);
}

TEST(MemoryFit, SaysWhenNothingFits) {
  auto peak = [](int64_t) { return int64_t{1000}; };
  EXPECT_EQ(largest_load_that_fits(peak, {.least = 64, .most = 4096}, 999), 0);
  EXPECT_EQ(largest_load_that_fits(peak, {.least = 64, .most = 4096}, 1000), 4096);
}

TEST(MemoryFit, TakesFewTrials) {
  int trials = 0;
  auto peak = [&](int64_t load) {
    ++trials;
    return 5000000 + 9000 * load + load * load / 50;
  };
  int64_t found = largest_load_that_fits(peak, {.least = 64, .most = 20000}, 80000000);
  EXPECT_LE(peak(found), 80000000);
  EXPECT_GT(peak(found * 18 / 16), 80000000);
  EXPECT_LE(trials, 14);
}

}  // namespace
}  // namespace lockstep
