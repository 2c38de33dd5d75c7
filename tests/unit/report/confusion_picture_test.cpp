#include "report/compare/confusion_picture.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace lockstep {
namespace {

Confusion two() {
  Confusion c({"a<b", "c&d"});
  c.at(0, 0) = 3;
  c.at(0, 1) = 1;
  c.at(1, 1) = 2;
  return c;
}

TEST(ConfusionPicture, SvgWritesNamesCountsAndAccuracies) {
  const std::string svg = confusion_svg(two(), "val  Acc@1 83.333");
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  for (const char* part : {"a&lt;b", "c&amp;d", ">3</text>", "75.0 % of 4", "100.0 % of 2",
                           "a&lt;b taken for c&amp;d: 1", "val  Acc@1 83.333"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find("c&amp;d taken for a&lt;b"), std::string::npos) << "empty cells are left out";
}

TEST(ConfusionPicture, ManyClassesHaveCellsWithoutText) {
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back("class" + std::to_string(i));
  Confusion c(names);
  for (int i = 0; i < 200; ++i) c.at(i, i) = 1;
  EXPECT_EQ(confusion_svg(c, "t").find("text-anchor"), std::string::npos);
}

uint32_t number_at(const std::string& text, std::size_t at) {
  uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(text[at + i]);
  return out;
}

TEST(ConfusionPicture, PngHoldsTheCellsAsPixels) {
  const std::string png = confusion_png(two());
  ASSERT_EQ(png.substr(1, 3), "PNG");
  const uint32_t side = number_at(png, 16);
  EXPECT_EQ(side, 640u);
  EXPECT_EQ(number_at(png, 20), side);
  // Signature, IHDR (25 bytes), then IDAT.
  const std::size_t data = 8 + 25;
  const uint32_t length = number_at(png, data);
  EXPECT_EQ(png.substr(data + 4, 4), "IDAT");
  const std::string body = png.substr(data + 4, 4 + length);
  EXPECT_EQ(number_at(png, data + 8 + length),
            crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
  std::string pixels(static_cast<std::size_t>(side) * (1 + 3 * side), '\0');
  uLongf size = pixels.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(pixels.data()), &size,
                       reinterpret_cast<const Bytef*>(body.data() + 4), length),
            Z_OK);
  EXPECT_EQ(size, pixels.size());
  auto pixel = [&](uint32_t x, uint32_t y) {
    return pixels.substr(y * (1 + 3 * side) + 1 + 3 * x, 3);
  };
  EXPECT_EQ(pixel(0, 600), "\xff\xff\xff") << "nothing was taken for the first class";
  EXPECT_EQ(pixel(600, 600), (std::string{8, 69, static_cast<char>(148)})) << "all of the row";
}

TEST(ConfusionPicture, TheTableHasALineForEveryCellThatIsNotZero) {
  EXPECT_EQ(confusion_table(two()),
            "true\ttaken for\titems\na<b\ta<b\t3\na<b\tc&d\t1\nc&d\tc&d\t2\n");
}

}  // namespace
}  // namespace lockstep
