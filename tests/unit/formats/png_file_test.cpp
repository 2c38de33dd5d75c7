#include "formats/png_file.h"

#include <gtest/gtest.h>
#include <png.h>

namespace lockstep {
namespace {

TEST(PngFile, HoldsThePixels) {
  RgbImage image(3, 2, {1, 2, 3});
  image.fill(1, 1, 2, 1, {250, 251, 252});
  const std::string file = encode_png(image);
  png_image read{};
  read.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_memory(&read, file.data(), file.size()), 0);
  EXPECT_EQ(read.width, 3u);
  EXPECT_EQ(read.height, 2u);
  EXPECT_EQ(read.format, static_cast<png_uint_32>(PNG_FORMAT_RGB)) << "8 bits a colour";
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(read));
  ASSERT_NE(png_image_finish_read(&read, nullptr, pixels.data(), 0, nullptr), 0);
  EXPECT_EQ(pixels, image.pixels);
}

TEST(PngFile, ASideMayBeOnePixel) {
  for (const auto& [width, height] : {std::pair{1, 7}, {7, 1}, {1, 1}}) {
    EXPECT_EQ(encode_png(RgbImage(width, height)).substr(0, 8), "\x89PNG\r\n\x1a\n");
  }
}

}  // namespace
}  // namespace lockstep
