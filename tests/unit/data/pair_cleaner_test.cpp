#include "data/parallel/pair_cleaner.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "data/parallel/sgm.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

std::string squeezed(std::string_view text) {
  std::string out = "from before";
  squeeze_spaces(text, out);
  return out;
}

TEST(SqueezeSpaces, KnowsTheWhiteSpaceOfUnicode) {
  EXPECT_EQ(squeezed("  a \t b\v\fc \r"), "a b c");
  EXPECT_EQ(squeezed("a\xC2\xA0\xE2\x80\x89\xE3\x80\x80 b\xE2\x81\x9F\xC2\x85"), "a b");
  EXPECT_EQ(squeezed("\xE2\x80\xA8x\xE2\x80\xA9\xE2\x80\xAFy\xE1\x9A\x80"), "x y");
  // Neither white space: zero width space, soft hyphen, quotation marks, ideographs.
  EXPECT_EQ(squeezed("a\xE2\x80\x8B\xC2\xAD \xE2\x80\x9E\xE3\x81\x82"),
            "a\xE2\x80\x8B\xC2\xAD \xE2\x80\x9E\xE3\x81\x82");
  EXPECT_EQ(squeezed(" \xC2\xA0 "), "");
}

class Cleaning : public ::testing::Test {
 protected:
  std::string clean(const std::string& source, const std::string& target) {
    dropped_.clear();
    PairCleaner cleaner(options_);
    std::optional<PairView> pair = cleaner.clean(source, target, dropped_);
    if (pair) return std::string(pair->source) + "/" + std::string(pair->target);
    return dropped_.size() == 1 ? dropped_.begin()->first : "no reason";
  }

  CleanerOptions options_{.source_language = "en", .target_language = "de"};
  DropCounts dropped_;
};

TEST_F(Cleaning, KeepsAndDropsAsMosesDoes) {
  EXPECT_EQ(clean(" a  b ", "c\td"), "a b/c d");
  EXPECT_EQ(clean("a", " \xC2\xA0 "), "empty line");
  std::string words;
  for (int i = 0; i < 80; ++i) words += "w ";
  EXPECT_EQ(clean(words, words + "w"), "more than 80 words");
  EXPECT_EQ(clean("a", "1 2 3 4 5 6 7 8 9"), "a/1 2 3 4 5 6 7 8 9");
  EXPECT_EQ(clean("1 2 3 4 5 6 7 8 9 10", "a"), "one side over 9 times the other");
  EXPECT_EQ(clean("a", std::string(1001, 'x')), "a word of more than 1000 characters");
  std::string umlauts;
  for (int i = 0; i < 1000; ++i) umlauts += "\xC3\xA4";
  EXPECT_EQ(clean("a", umlauts), "a/" + umlauts);
  EXPECT_EQ(clean("a\xFF", "b"), "not valid UTF-8");
  EXPECT_EQ(clean("a | b|", "c"), "a | b|/c");
  options_.drop_bars = true;
  EXPECT_EQ(clean("a | b|", "|c"), "a b/c");
  EXPECT_EQ(clean("|", "c"), "empty line");
}

TEST_F(Cleaning, DropsOtherLanguagesAndWhatIsNotTranslated) {
  const std::string english = "This is the house that we have seen and it is not big.";
  const std::string german = "Das ist das Haus, das wir gesehen haben, und es ist nicht groß.";
  EXPECT_EQ(clean(english, german), english + "/" + german);
  EXPECT_EQ(clean(german, german), "source in another language");
  EXPECT_EQ(clean(english, english), "target in another language");
  EXPECT_EQ(clean(english, "Cette maison que nous avons vue est grande et elle est dans la rue"),
            "target in another language");
  EXPECT_EQ(clean("\xD0\x9F\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82", "Hallo"),
            "source in another language");
  EXPECT_EQ(clean("Microsoft Windows Server 2008", "Microsoft Windows Server 2008"),
            "not translated");
  EXPECT_EQ(clean("Windows XP", "Windows XP"), "Windows XP/Windows XP");
  // Names and quotations do not make another language.
  EXPECT_NE(clean("He sang \"O du lieber Augustin, alles ist hin\" to us", "Er sang"), "");
  EXPECT_TRUE(dropped_.empty());
  options_.check_language = false;
  EXPECT_EQ(clean(german, german), german + "/" + german);
}

// What docs/translation.md states, on text that is what it says it is.
TEST(LanguageCheck, PassesNearlyAllRealTextAndFindsMostOfTheOther) {
  fs::path data = fs::path(LOCKSTEP_SHARED) / "data";
  if (!fs::exists(data / "wmt-newstest")) GTEST_SKIP() << "no real data in " << data;
  LanguageCheck english = *LanguageCheck::of("en");
  LanguageCheck german = *LanguageCheck::of("de");
  int64_t lines = 0;
  int64_t refused = 0;
  int64_t foreign = 0;
  int64_t found = 0;
  for (const char* name : {"wmt-newstest/train.2008-2012", "multi30k/train", "mlqe-pe/train",
                           "tatoeba/train", "opennmt10k/train.tok"}) {
    for_each_line(data / (std::string(name) + ".en.gz"), [&](std::string_view line, int64_t) {
      ++lines;
      refused += english.speaks_another(line);
      if (count_words(line) < 8) return;
      ++foreign;
      found += german.speaks_another(line);
    });
    for_each_line(data / (std::string(name) + ".de.gz"), [&](std::string_view line, int64_t) {
      ++lines;
      refused += german.speaks_another(line);
      if (count_words(line) < 8) return;
      ++foreign;
      found += english.speaks_another(line);
    });
  }
  RecordProperty("refused", std::to_string(refused) + " of " + std::to_string(lines));
  RecordProperty("found", std::to_string(found) + " of " + std::to_string(foreign));
  EXPECT_LE(refused * 2000, lines) << refused;                         // 0.05 % of the good
  EXPECT_GE(found * 100, foreign * 70) << found << " of " << foreign;  // of 8 words or more
}

TEST(Sgm, GivesTextAndPlaceOfEachSegment) {
  std::vector<SgmSegment> segments = read_sgm(
      "<srcset setid=\"x\">\n<DOC docid=\"a.1\" genre=\"news\">\n<p>\n"
      "<seg id=\"1\"> One &amp; two  &lt;b&gt; &quot;&apos;&quot; &amp;lt; & </seg>\n"
      "<SEG id=2>zwei</SEG>\n</p></doc><doc sysid=\"ref\" docid=\"b\"><seg id=\"1\">x</seg></doc>",
      "f");
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].text, "One & two <b> \"'\" &lt; &");
  EXPECT_EQ(segments[0].place, "a.1/1");
  EXPECT_EQ(segments[1].place, "a.1/2");
  EXPECT_EQ(segments[2].place, "b/1");
  EXPECT_ERROR(read_sgm("<seg id=\"1\">cut off", "f"), DataError, "f: segment 1 has no number");
  EXPECT_ERROR(read_sgm("<seg >x</seg>", "f"), DataError, "f: segment 1 has no number");
  EXPECT_ERROR(read_sgm("text", "f"), DataError, "f: holds no segment");
}

}  // namespace
}  // namespace lockstep
