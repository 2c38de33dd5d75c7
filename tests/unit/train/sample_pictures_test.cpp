#include "train/listeners/sample_pictures.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

Sample sample(const std::string& reference, const std::string& output, int64_t side,
              RgbColor color) {
  return {"file", reference, output, std::make_shared<const RgbImage>(side, side, color)};
}

RgbColor pixel(const RgbImage& image, int64_t x, int64_t y) {
  const uint8_t* p = image.at(x, y);
  return {p[0], p[1], p[2]};
}

TEST(SamplePictures, AreFramedByWhetherTheyAreRight) {
  const RgbColor grey = {90, 91, 92};
  const auto grid = sample_grid({sample("cat", "cat", 32, grey), sample("cat", "dog", 32, grey),
                                 sample("dog", "dog", 32, grey)});
  ASSERT_TRUE(grid);
  // Two columns and rows of 32 * 4 pixels, frames of 3, gaps of 4.
  EXPECT_EQ(grid->width, 2 * (128 + 6 + 4) + 4);
  EXPECT_EQ(grid->height, grid->width);
  EXPECT_EQ(pixel(*grid, 0, 0), (RgbColor{255, 255, 255}));
  EXPECT_EQ(pixel(*grid, 4, 4), (RgbColor{46, 160, 67})) << "right";
  EXPECT_EQ(pixel(*grid, 4 + 138, 4), (RgbColor{207, 34, 46})) << "wrong";
  EXPECT_EQ(pixel(*grid, 4 + 3, 4 + 3), grey);
  EXPECT_EQ(pixel(*grid, 4 + 3 + 127, 4 + 3 + 127), grey);
  EXPECT_EQ(pixel(*grid, 4 + 3 + 128, 4 + 10), (RgbColor{46, 160, 67}));
  EXPECT_EQ(pixel(*grid, 4, 4 + 138), (RgbColor{46, 160, 67})) << "the third, below the first";
  EXPECT_EQ(pixel(*grid, 4 + 138, 4 + 138), (RgbColor{255, 255, 255})) << "there is no fourth";
}

TEST(SamplePictures, LargeOnesBecomeMeansOfTheirPixels) {
  auto large = std::make_shared<RgbImage>(256, 256, RgbColor{0, 0, 0});
  large->fill(0, 0, 1, 2, {100, 200, 40});  // half of the first pixel of 128 x 128
  const auto grid = sample_grid({{"file", "a", "b", large}});
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->width, 128 + 6 + 8);
  EXPECT_EQ(pixel(*grid, 7, 7), (RgbColor{50, 100, 20}));
  EXPECT_EQ(pixel(*grid, 8, 7), (RgbColor{0, 0, 0}));
}

TEST(SamplePictures, TextsHaveNone) {
  EXPECT_FALSE(sample_grid({{"a", "b", "c"}}));
  EXPECT_FALSE(sample_grid({}));
}

}  // namespace
}  // namespace lockstep
