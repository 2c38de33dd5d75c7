// Which images are in which step.
#include "batches/image_epochs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace lockstep {
namespace {

using Holders = std::vector<std::vector<int>>;

std::vector<int32_t> numbers(int32_t begin, int32_t end) {
  std::vector<int32_t> out(static_cast<std::size_t>(end - begin));
  std::iota(out.begin(), out.end(), begin);
  return out;
}

// Three ranks: 0 and 2 see one folder with 70 images, 1 another with 33.
ImagePlaces two_places() { return {{0, 1, 0}, {numbers(0, 70), numbers(70, 103)}}; }

TEST(AssignShards, GivesEachToOneThatHoldsItInProportionToRanks) {
  const Holders all(12, {0, 1, 2});
  const std::vector<int> out = assign_shards(all, std::vector<int64_t>(12, 100), {1, 1, 2});
  std::vector<int> counts(3, 0);
  for (int place : out) ++counts[place];
  EXPECT_EQ(counts, (std::vector<int>{3, 3, 6}));
}

TEST(AssignShards, BeginsWithThoseThatHaveNoChoice) {
  const Holders holders = {{0, 1}, {0, 1}, {0}, {0}};
  EXPECT_EQ(assign_shards(holders, {10, 10, 10, 10}, {1, 1}), (std::vector<int>{1, 1, 0, 0}));
}

StepParts three() { return StepParts(equal_shares(3, 1)); }

TEST(ImageEpochs, OfAllImagesDoNotDependOnTheRanks) {
  ImageEpochs epochs(23, {.seed = 5, .step_images = 10});
  for (int64_t step = 0; step < 3; ++step) {
    const auto whole = epochs.part(1, step, 0, StepParts());
    std::vector<int64_t> parts;
    for (int64_t part = 0; part < 4; ++part) {
      const auto one = epochs.part(1, step, part, StepParts(equal_shares(4, 1)));
      EXPECT_GE(std::ssize(one), epochs.smallest_part(1, step, 4));
      parts.insert(parts.end(), one.begin(), one.end());
    }
    EXPECT_EQ(whole, parts);
    EXPECT_EQ(std::ssize(whole), epochs.images_in_step(1, step));
  }
  EXPECT_EQ(epochs.full_steps(0), 2);
  EXPECT_EQ(epochs.images_in_step(0, 2), 3);
}

TEST(ImageEpochs, WithPlacesEachImageComesOnceAndFromItsOwnPlace) {
  ImageEpochs epochs(two_places(), {.seed = 1, .step_images = 12});
  const int64_t steps = epochs.full_steps(0) + 1;
  for (int64_t epoch : {0, 1}) {
    std::multiset<int64_t> seen;
    for (int64_t step = 0; step < steps; ++step) {
      int64_t in_step = 0;
      for (int64_t part = 0; part < 6; ++part) {  // three ranks, two micro-batches
        for (int64_t image : epochs.part(epoch, step, part, StepParts(equal_shares(3, 2)))) {
          EXPECT_EQ(image >= 70, part % 3 == 1) << "part " << part;
          seen.insert(image);
          ++in_step;
        }
      }
      EXPECT_EQ(in_step, epochs.images_in_step(epoch, step));
      EXPECT_LE(in_step, 12);
      if (step + 1 < steps) {
        EXPECT_GE(in_step, 10) << "at most one a place is missing";
      }
    }
    EXPECT_EQ(seen.size(), 103u);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 103u);
  }
}

// Of places that have 70 and 33 images, three steps of 12 were taken, then one of 24.
TEST(ImageEpochs, WithPlacesEachImageComesOnceWhenStepsGetAnotherSize) {
  ImageEpochs before(two_places(), {.seed = 1, .step_images = 12});
  ImageEpochs between(two_places(), {.seed = 1, .step_images = 24});
  ImageEpochs after(two_places(), {.seed = 1, .step_images = 12});
  between.continue_epoch(2, {{3, {12, "images"}}});
  after.continue_epoch(2, {{3, {12, "images"}}, {1, {24, "images"}}});
  std::multiset<int64_t> seen;
  auto take = [&](ImageEpochs& epochs, int64_t step) {
    for (int64_t part = 0; part < 3; ++part) {
      for (int64_t image : epochs.part(2, step, part, three())) seen.insert(image);
    }
  };
  for (int64_t step : {0, 1, 2}) take(before, step);
  take(between, 3);
  for (int64_t step = 4; step <= after.full_steps(2); ++step) take(after, step);
  EXPECT_EQ(after.full_steps(2), 4 + (103 - 60) / 12);
  EXPECT_EQ(after.full_steps(3), 103 / 12);
  EXPECT_EQ(seen.size(), 103u);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 103u);
}

TEST(ImageEpochs, WithPlacesStepsAreSharedInProportion) {
  ImageEpochs epochs(two_places(), {.seed = 1, .step_images = 12});
  for (int64_t step = 0; step < 8; ++step) {
    const auto count = [&](int64_t part) {
      return std::ssize(epochs.part(0, step, part, three()));
    };
    EXPECT_NEAR(static_cast<double>(count(1)), 12 * 33 / 103.0, 1);
    EXPECT_NEAR(static_cast<double>(count(0) + count(2)), 12 * 70 / 103.0, 1);
    EXPECT_EQ(epochs.smallest_part(0, step, 3), std::min({count(0), count(1), count(2)}));
  }
}

TEST(ImageEpochs, AreDifferentEveryTimeAndTheSameWhenAskedAgain) {
  ImageEpochs epochs(two_places(), {.seed = 1, .step_images = 103});
  const auto first = epochs.part(0, 0, 1, three());
  EXPECT_NE(first, epochs.part(1, 0, 1, three()));
  epochs.part(7, 0, 1, three());
  EXPECT_EQ(first, epochs.part(0, 0, 1, three()));
}

}  // namespace
}  // namespace lockstep
