#include "report/compare/confusion_picture.h"

#include <gtest/gtest.h>

#include "metrics/confusion_pixels.h"

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

TEST(ConfusionPicture, PngHoldsTheCellsAsPixels) {
  const RgbImage pixels = confusion_pixels(two());
  EXPECT_EQ(pixels.width, 640);
  EXPECT_EQ(pixels.height, 640);
  const auto pixel = [&](int64_t x, int64_t y) {
    return RgbColor{pixels.at(x, y)[0], pixels.at(x, y)[1], pixels.at(x, y)[2]};
  };
  EXPECT_EQ(pixel(0, 600), (RgbColor{255, 255, 255})) << "nothing was taken for the first class";
  EXPECT_EQ(pixel(600, 600), (RgbColor{8, 69, 148})) << "all of the row";
  EXPECT_EQ(confusion_png(two()), encode_png(pixels));
}

TEST(ConfusionPicture, TheTableHasALineForEveryCellThatIsNotZero) {
  EXPECT_EQ(confusion_table(two()),
            "true\ttaken for\titems\na<b\ta<b\t3\na<b\tc&d\t1\nc&d\tc&d\t2\n");
}

}  // namespace
}  // namespace lockstep
