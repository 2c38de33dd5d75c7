#include "data/parallel/near_duplicates.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text.h"

namespace lockstep {
namespace {

TEST(ComparisonKey, IgnoresCaseDigitsPunctuationAndSpacing) {
  EXPECT_EQ(comparison_key("  Save 3 files... "), "save files");
  EXPECT_EQ(comparison_key("save--FILES!"), "save files");
  EXPECT_EQ(comparison_key("Öffne die Straße"), comparison_key("ÖFFNE DIE STRASSE"));
  EXPECT_EQ(comparison_key("Öl"), comparison_key("O\xCC\x88l"));  // composed and decomposed
}

TEST(ComparisonKey, IsTheSameWithAndWithoutIcu) {
  // A letter that is no ASCII sends the whole line through ICU.
  EXPECT_EQ(comparison_key("Don't use X11-mode (é)"), comparison_key("Don't use X11-mode") + " é");
}

TEST(ComparisonKey, OfALineWithoutLettersIsTheLine) {
  EXPECT_EQ(comparison_key(" 1 + 2 "), "1 + 2");
  EXPECT_NE(comparison_key("1 + 2"), comparison_key("1 + 3"));
}

TEST(Trigrams, MakeJaccardOfSets) {
  EXPECT_EQ(trigrams("abc").size(), 3u);  // " ab" "abc" "bc "
  EXPECT_DOUBLE_EQ(jaccard(trigrams("abc"), trigrams("abc")), 1);
  EXPECT_DOUBLE_EQ(jaccard(trigrams("abc"), trigrams("xyz")), 0);
  EXPECT_DOUBLE_EQ(jaccard(trigrams("abcd"), trigrams("abce")), 2.0 / 6);
}

// Sentences of a small vocabulary, so that many are similar by chance.
std::vector<std::string> random_sentences(uint64_t key, int count) {
  const std::vector<std::string> words{"the", "file",  "cannot", "be", "opened", "read",
                                       "a",   "value", "of",     "is", "wrong",  "missing"};
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) {
    std::string sentence;
    uint64_t length = 3 + random_below(key, 1000u * i, 6);
    for (uint64_t w = 0; w < length; ++w) {
      sentence += words[random_below(key, 1000u * i + w + 1, words.size())] + " ";
    }
    out.emplace_back(trim(sentence));
  }
  return out;
}

TEST(NearCopyIndex, FindsExactlyWhatComparingAllPairsFinds) {
  std::vector<std::string> held_out = random_sentences(1, 80);
  std::vector<std::string> others = random_sentences(2, 1500);
  std::vector<uint32_t> frequencies(NearCopyIndex::kBuckets);
  for (const std::string& text : others) {
    for (uint32_t gram : trigrams(text)) ++frequencies[NearCopyIndex::bucket_of(gram)];
  }
  for (double threshold : {0.5, 0.7, 0.8, 1.0}) {
    NearCopyIndex index(threshold, frequencies);
    for (const std::string& text : held_out) index.add(trigrams(text));
    int found = 0;
    for (const std::string& text : others) {
      bool expected = false;
      for (const std::string& other : held_out) {
        expected = expected || jaccard(trigrams(text), trigrams(other)) >= threshold;
      }
      EXPECT_EQ(index.has_near_copy(trigrams(text)), expected) << text << " at " << threshold;
      found += expected;
    }
    if (threshold < 0.8) {
      EXPECT_GT(found, 20);  // or the test would compare nothing
    }
  }
}

TEST(DisjointSets, AreNamedByTheirSmallestMember) {
  DisjointSets sets(6);
  sets.unite(5, 3);
  sets.unite(3, 4);
  sets.unite(1, 2);
  EXPECT_EQ(sets.find(5), 3);
  EXPECT_EQ(sets.find(4), 3);
  EXPECT_EQ(sets.find(2), 1);
  sets.unite(2, 4);
  EXPECT_EQ(sets.find(5), 1);
  EXPECT_EQ(sets.find(0), 0);
}

}  // namespace
}  // namespace lockstep
