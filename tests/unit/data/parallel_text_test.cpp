#include "data/parallel/parallel_text.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "base/ordered_parallel.h"
#include "data/lines/line_stream.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

class ParallelTextFiles : public ::testing::Test {
 protected:
  ParallelText read(const std::string& source, const std::string& target,
                    const CleaningRules& rules = {}) {
    return read_parallel_text({write("a.en", source), write("a.de", target)}, rules);
  }
  fs::path write(const std::string& name, const std::string& text) {
    write_file(folder_.path() / name, text);
    return folder_.path() / name;
  }
  TemporaryFolder folder_;
};

TEST_F(ParallelTextFiles, ReadsTrimmedPairsAndCountsWhatItDrops) {
  ParallelText text = read(
      "\xEF\xBB\xBF"
      "one two \r\n\nthree\nfour five six\nx",
      "eins zwei\n\n\nvier f\xC3\xBCnf\ny");
  EXPECT_EQ(text.lines, 5);
  ASSERT_EQ(text.pairs.size(), 3);
  EXPECT_EQ(text.pairs[0].source, "one two");
  EXPECT_EQ(text.pairs[1].target, "vier f\xC3\xBCnf");
  EXPECT_EQ(text.pairs[2].source, "x");
  EXPECT_EQ(text.dropped, (DropCounts{{"empty line", 2}}));
}

TEST_F(ParallelTextFiles, AppliesLengthsAndRatio) {
  ParallelText text = read("a\na b c\na b c d\na b\n", "x\nx y z\nw x y z\nx y z u v\n",
                           {.min_words = 2, .max_words = 4, .max_ratio = 2});
  EXPECT_EQ(text.pairs.size(), 2);
  EXPECT_EQ(text.dropped, (DropCounts{{"fewer than 2 words", 1}, {"more than 4 words", 1}}));
  text = read("a b\n", "x y z u v\n", {.max_ratio = 2});
  EXPECT_EQ(text.dropped, (DropCounts{{"one side over 2 times the other", 1}}));
}

TEST_F(ParallelTextFiles, KeepsAllOfAHeldOutFileButEmptyLines) {
  std::string longest(1000, 'a');
  for (std::size_t i = 1; i < longest.size(); i += 2) longest[i] = ' ';
  fs::path source = write("t.en", longest + "\n\nb\n");
  fs::path target = write("t.de", "x\ny\nz\n");
  ParallelText text = read_held_out_text({source, target});
  EXPECT_EQ(text.pairs.size(), 2);
  EXPECT_EQ(text.dropped, (DropCounts{{"empty line", 1}}));
}

TEST_F(ParallelTextFiles, NamesBothCountsOfFilesThatDoNotMatch) {
  EXPECT_ERROR(read("a\nb\nc\n", "x\n"), DataError, "a.en has 3 lines, ");
  EXPECT_ERROR(read("a\n", "x\ny\n"), DataError, "a.de has 2; expected as many");
}

TEST_F(ParallelTextFiles, PointsAtTheByteThatIsNotUtf8) {
  EXPECT_ERROR(read("fine\n\xC3\xA4"
                    "b\xE4 bad\n",
                    "x\ny\n"),
               DataError, "a.en:2:3: byte 0xe4 is not valid UTF-8");
}

TEST_F(ParallelTextFiles, ReportsMissingAndDamagedFiles) {
  fs::path there = write("a.de", "x\n");
  EXPECT_ERROR(read_parallel_text({folder_.path() / "none.en", there}, {}), DataError,
               "none.en: no such file");
  fs::path packed = folder_.path() / "b.en.gz";
  gzFile file = gzopen(packed.c_str(), "wb");
  for (int i = 0; i < 5000; ++i) gzprintf(file, "line %d %d\n", i, i * 7919 % 1013);
  gzclose(file);
  std::string whole = read_file(packed);
  LineStream lines(packed);
  std::string_view line;
  while (lines.next(line)) {
  }
  EXPECT_EQ(lines.number(), 5000);
  write_file(packed, whole.substr(0, whole.size() / 2));
  EXPECT_ERROR(read_parallel_text({packed, packed}, {}), DataError, "b.en.gz: damaged after line");
}

TEST_F(ParallelTextFiles, MayBeLeftUnread) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "line\n";
  LineStream lines(write("long.en", text));
  std::string_view line;
  EXPECT_TRUE(lines.next(line));  // and the destructor does not wait for the rest
}

TEST(OrderedParallel, EmitsInOrderWithFewWaiting) {
  std::atomic<int64_t> started = 0;
  int64_t expected = 0;
  ordered_parallel(
      500, 3, [&](int64_t block) { return ++started, block; },
      [&](int64_t block) {
        EXPECT_EQ(block, expected++);
        EXPECT_LE(started, block + 1 + 4 * 3);
      });
  EXPECT_EQ(expected, 500);
}

TEST(OrderedParallel, ThrowsWhatTheWorkOrTheReceiverThrows) {
  auto failing = [](int64_t block) {
    if (block == 17) throw DataError("block {}", block);
    return block;
  };
  EXPECT_ERROR(ordered_parallel(100, 2, failing, [](int64_t) {}), DataError, "block 17");
  auto fine = [](int64_t block) { return block; };
  auto refusing = [](int64_t block) {
    if (block == 3) throw std::runtime_error("full");
  };
  EXPECT_THROW(ordered_parallel(100, 2, fine, refusing), std::runtime_error);
}

}  // namespace
}  // namespace lockstep
