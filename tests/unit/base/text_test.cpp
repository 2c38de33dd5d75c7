#include "base/text.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Text, WritesNumbersAndTimesForPeople) {
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-1234), "-1,234");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(short_number(24123), "24.1k");
  EXPECT_EQ(short_number(0.5), "0.5");
  EXPECT_EQ(short_number(999.7), "1.00k");
  EXPECT_EQ(short_duration(45), "45 s");
  EXPECT_EQ(short_duration(61325), "17 h 02 m");
  EXPECT_EQ(short_bytes(1.5e9), "1.5 GB");
}

TEST(Text, FindsTheNearestName) {
  EXPECT_EQ(nearest_name("adm", {"sgd", "adam"}), "adam");
  EXPECT_EQ(nearest_name("optimizer.warmup_step", {"optimizer.warmup_steps", "run.seed"}),
            "optimizer.warmup_steps");
  EXPECT_FALSE(nearest_name("xyz", {"sgd", "adam"}));
}

TEST(Text, RejectsInvalidUtf8AtItsFirstByte) {
  EXPECT_FALSE(invalid_utf8_at("Größe \xE2\x82\xAC \xF0\x9F\x98\x80"));
  EXPECT_EQ(invalid_utf8_at("ab\xFF"), 2u);
  EXPECT_EQ(invalid_utf8_at("\xC0\x80"), 0u);       // overlong
  EXPECT_EQ(invalid_utf8_at("a\xED\xA0\x80"), 1u);  // surrogate
  EXPECT_EQ(invalid_utf8_at("\xE2\x82"), 0u);       // cut short
}

TEST(Text, CodePointsGoThereAndBack) {
  std::string text = "Größe € 😀";
  EXPECT_EQ(to_utf8(to_code_points(text)), text);
  EXPECT_EQ(to_code_points("a\xFF")[1], U'\uFFFD');
}

TEST(Text, SplitsWordsAndFields) {
  EXPECT_EQ(split("a,b,,c", ',').size(), 4u);
  EXPECT_EQ(split_words("  a\tb \n").size(), 2u);
  EXPECT_EQ(trim(" x \n"), "x");
}

TEST(Text, KnowsTheCaseOfAsciiOnly) {
  EXPECT_EQ(lower_ascii("Größe [AZ] Ä"), "größe [az] Ä");
  EXPECT_TRUE(equals_ignoring_case("Content-LENGTH", "content-length"));
  EXPECT_FALSE(equals_ignoring_case("a", "ab"));
  EXPECT_FALSE(equals_ignoring_case("Ä", "ä"));
}

}  // namespace
}  // namespace lockstep
