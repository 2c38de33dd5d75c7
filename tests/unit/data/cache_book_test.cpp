// Which fetched images are kept.
#include "data/images/cache_book.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

std::vector<int64_t> wanted(CacheBook& book) {
  std::vector<int64_t> out;
  while (auto image = book.want_next()) out.push_back(*image);
  return out;
}

std::vector<int64_t> dropped(CacheBook& book) {
  std::vector<int64_t> out;
  while (auto image = book.drop_next()) out.push_back(*image);
  return out;
}

void expect(CacheBook& book, const std::vector<int64_t>& images) {
  for (int64_t image : images) book.expect(image);
}

using Images = std::vector<int64_t>;

TEST(CacheBook, KeepsAllWithoutALimit) {
  CacheBook book({10, 20, 30}, 0);
  expect(book, {2, 0, 1, 2});
  EXPECT_EQ(wanted(book), (Images{2, 0, 1, 2}));
  for (int64_t i : {0, 1, 2}) {
    book.arrived(i);
    book.used(i);
  }
  EXPECT_EQ(book.bytes(), 60);
  EXPECT_EQ(dropped(book), Images{});
}

TEST(CacheBook, WantsAsMuchAsFitsAndMoreWhenItWasUsed) {
  CacheBook book({10, 10, 10, 10}, 25);
  expect(book, {3, 1, 0, 2});
  EXPECT_EQ(wanted(book), (Images{3, 1}));
  book.arrived(3);
  book.arrived(1);
  EXPECT_EQ(wanted(book), Images{});
  book.used(3);
  EXPECT_EQ(wanted(book), Images{0});
  book.arrived(0);
  EXPECT_EQ(dropped(book), Images{3}) << "what was used goes, what is wanted stays";
  EXPECT_EQ(book.bytes(), 20);
  book.used(1);
  book.used(0);
  EXPECT_EQ(wanted(book), Images{2});
  book.arrived(2);
  EXPECT_EQ(dropped(book), Images{1}) << "used longest ago";
  EXPECT_TRUE(book.is_here(0));
}

TEST(CacheBook, AnImageThatIsWantedTwiceStaysUntilItsSecondUse) {
  CacheBook book({10, 10, 10}, 20);
  expect(book, {0, 0, 1, 2});
  EXPECT_EQ(wanted(book), (Images{0, 0, 1}));
  book.arrived(0);
  book.arrived(1);
  book.used(0);
  EXPECT_EQ(wanted(book), Images{});
  EXPECT_EQ(book.wanted_bytes(), 20);
  book.used(0);
  EXPECT_EQ(wanted(book), Images{2});
}

// An image may be read before there was room to fetch it ahead.
TEST(CacheBook, WhatWasUsedEarlyIsNotWantedAgain) {
  CacheBook book({10, 10, 10}, 10);
  expect(book, {0, 1, 2, 1});
  EXPECT_EQ(wanted(book), Images{0});
  book.arrived(1);
  book.used(1);
  EXPECT_EQ(dropped(book), Images{});
  book.arrived(0);
  EXPECT_EQ(dropped(book), Images{1});
  book.used(0);
  EXPECT_EQ(wanted(book), Images{2}) << "not 1, whose first use was before";
  book.used(2);
  EXPECT_EQ(wanted(book), Images{1}) << "its second use";
}

// Another rank may read an image before the rank that expects for both has come to it.
TEST(CacheBook, WhatWasUsedBeforeItWasExpectedTakesNoRoom) {
  CacheBook book({10, 10, 10}, 10);
  book.arrived(0);
  book.used(0);
  expect(book, {0, 1, 0});
  EXPECT_EQ(wanted(book), Images{1});
  book.used(1);
  EXPECT_EQ(wanted(book), Images{0}) << "its second use";
}

TEST(CacheBook, WhatIsReadIsNotDropped) {
  CacheBook book({10, 10}, 10);
  book.arrived(0);
  book.pin(0);
  book.arrived(1);
  EXPECT_EQ(dropped(book), Images{1});
  book.arrived(1);
  book.unpin(0);
  EXPECT_EQ(dropped(book), Images{0});
}

}  // namespace
}  // namespace lockstep
