#include "data/tokenize/word_table.h"

#include <gtest/gtest.h>

#include <string>

#include "support/expect_error.h"

namespace lockstep {
namespace {

TEST(WordTable, NumbersWordsInTheOrderTheyCome) {
  WordTable words;
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(words.add("word" + std::to_string(i)), i);
  EXPECT_EQ(words.add("word7"), 7);
  EXPECT_EQ(words.find("word4999"), 4999);
  EXPECT_EQ(words.find("word"), -1);
  EXPECT_EQ(words.add(std::string(1 << 20, 'x')), 5000);
  EXPECT_EQ(words[7], "word7");
  EXPECT_EQ(words.size(), 5001);
}

TEST(WordCounts, SplitsAtSpacesOnly) {
  WordCounts counts;
  counts.add_line("  b a\tc  b ");
  std::vector<CountedWord> sorted = counts.sorted();
  ASSERT_EQ(sorted.size(), 2u);
  EXPECT_EQ(sorted[0].word, "b");
  EXPECT_EQ(sorted[0].count, 2);
  EXPECT_EQ(sorted[1].word, "a\tc");
}

TEST(WordCounts, ForgetTheRarestBeyondTheirBound) {
  WordCounts counts(100);
  for (int i = 0; i < 20; ++i) counts.add("often" + std::to_string(i), 50);
  for (int i = 0; i < 1000; ++i) counts.add("once" + std::to_string(i));
  EXPECT_LE(counts.size(), 100);
  std::vector<CountedWord> sorted = counts.sorted();
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(sorted[i].count, 50);
}

TEST(WordCounts, SurviveTheDisk) {
  TemporaryFolder folder;
  fs::path path = folder.path() / "words.txt";
  WordCounts counts;
  counts.add_line("a b a \xC3\xA4\tc 1 2 12 a");
  write_word_counts(path, counts);
  EXPECT_EQ(read_file(path).substr(0, 4), "3 a\n");
  write_word_counts(folder.path() / "again.txt", read_word_counts(path));
  EXPECT_EQ(read_file(folder.path() / "again.txt"), read_file(path));
  write_file(path, "3 a\nx b\n");
  EXPECT_ERROR(read_word_counts(path), DataError, "\"x b\": expected a count and a word");
  write_file(path, "3 a\n1 b");
  EXPECT_ERROR(read_word_counts(path), DataError, "cut off");
}

}  // namespace
}  // namespace lockstep
