#include "data/parallel/pair_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/lines/numbered_lines.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// All pairs in the order of their keys, over `buckets` buckets.
Pairs shuffled(const Pairs& pairs, int64_t buckets, bool drop_repeated, int64_t* repeated) {
  TemporaryFolder folder;
  BucketWriter writer(folder.path(), buckets);
  BucketedPairs some(buckets);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    PairView pair{pairs[i].first, pairs[i].second};
    some.add(drop_repeated ? key_of_text(pair, 5) : key_of_place(0, static_cast<int64_t>(i), 5),
             pair);
  }
  writer.write(some);
  writer.finish();
  Pairs out;
  for (int64_t i = 0; i < buckets; ++i) {
    Bucket bucket(folder.path(), i, drop_repeated);
    *repeated += bucket.repeated();
    for (const PairView& pair : bucket.pairs()) out.emplace_back(pair.source, pair.target);
  }
  return out;
}

Pairs numbered(int count) {
  Pairs out;
  for (int i = 0; i < count; ++i) {
    out.emplace_back("source sentence " + std::to_string(i), "Zielsatz " + std::to_string(i * i));
  }
  return out;
}

TEST(PairBuckets, GiveAllPairsInAnOrderThatTheirNumberDoesNotChange) {
  Pairs pairs = numbered(5000);
  for (bool drop : {false, true}) {
    int64_t repeated = 0;
    Pairs one = shuffled(pairs, 1, drop, &repeated);
    EXPECT_EQ(one, shuffled(pairs, 64, drop, &repeated));
    EXPECT_EQ(repeated, 0);
    EXPECT_NE(one, pairs);
    std::sort(one.begin(), one.end());
    Pairs sorted = pairs;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(one, sorted);
  }
}

TEST(PairBuckets, KeepOneOfEqualPairsOrAll) {
  Pairs pairs = numbered(100);
  Pairs twice = pairs;
  twice.insert(twice.end(), pairs.begin(), pairs.begin() + 30);
  twice.emplace_back(pairs[0].first, pairs[1].second);  // another pair: one side only is equal
  int64_t repeated = 0;
  EXPECT_EQ(shuffled(twice, 8, true, &repeated).size(), 101u);
  EXPECT_EQ(repeated, 30);
  repeated = 0;
  EXPECT_EQ(shuffled(twice, 8, false, &repeated).size(), 131u);
  EXPECT_EQ(repeated, 0);
}

TEST(PairBuckets, AreFoundToBeCutOff) {
  TemporaryFolder folder;
  BucketWriter writer(folder.path(), 1);
  BucketedPairs some(1);
  some.add(7, {"source", "target"});
  writer.write(some);
  writer.finish();
  std::string bytes = read_file(folder.path() / "pairs-000");
  for (std::size_t size : {bytes.size() - 1, std::size_t{5}}) {
    write_file(folder.path() / "pairs-000", bytes.substr(0, size));
    EXPECT_ERROR(Bucket(folder.path(), 0, false), DataError, "cut off");
  }
}

TEST(LineReader, GiveTheLinesOfAnySource) {
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += "line " + std::to_string(i) + (i % 3 == 0 ? "\r\n" : "\n");
  text += "\n\nlast";
  for (std::size_t step : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 18}) {
    std::size_t at = 0;
    LineReader blocks([&](char* to, std::size_t most) {
      std::size_t n = std::min({step, most, text.size() - at});
      text.copy(to, n, at);
      at += n;
      return n;
    });
    int64_t lines = 0;
    while (std::optional<NumberedLines> block = blocks.next()) {
      EXPECT_EQ(block->first, lines);
      for (int64_t i = 0; i < block->size(); ++i, ++lines) {
        std::string expected = "line " + std::to_string(lines);
        if (lines >= 20'000) expected = lines == 20'002 ? "last" : "";
        ASSERT_EQ((*block)[i], expected);
      }
    }
    EXPECT_EQ(lines, 20'003);
  }
}

TEST(LineReader, PassOnWhatTheSourceThrows) {
  LineReader blocks([](char*, std::size_t) -> std::size_t { throw DataError("broken"); });
  EXPECT_ERROR(blocks.next(), DataError, "broken");
}

}  // namespace
}  // namespace lockstep
