// Decoding of regions, at reduced size, and of files that are not what they should be.
#include "data/images/image_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "support/expect_error.h"
#include "support/image_files.h"

namespace lockstep {
namespace {

// The decoded value at a pixel of the (reduced) image.
int at(const DecodedPixels& from, int64_t x, int64_t y, int c) {
  return from.pixels[(y - from.box.y) * from.stride + 4 * (x - from.box.x) + c];
}

TEST(ImageDecoder, DecodesARegionAsItIsInTheWholeImage) {
  for (int quality : {80, 97}) {  // chroma at half and at full resolution
    std::vector<std::byte> file = jpeg_file(150, 117, 3, quality);
    ImageDecoder whole_decoder, decoder;
    whole_decoder.open(file);
    DecodedPixels whole = whole_decoder.decode({0, 0, 150, 117});
    for (PixelBox box : {PixelBox{0, 0, 150, 117},
                         {16, 16, 32, 32},
                         {1, 2, 3, 4},
                         {17, 31, 99, 86},
                         {149, 116, 1, 1},
                         {33, 0, 50, 117}}) {
      decoder.open(file);
      DecodedPixels part = decoder.decode(box);
      int differences = 0;
      for (int64_t y = box.y; y < box.y + box.height; ++y) {
        for (int64_t x = box.x; x < box.x + box.width; ++x) {
          for (int c = 0; c < 3; ++c) differences += at(part, x, y, c) != at(whole, x, y, c);
        }
      }
      EXPECT_EQ(differences, 0) << quality << ": " << box.x << " " << box.y << " " << box.width;
    }
  }
}

TEST(ImageDecoder, DecodesAtAReducedSize) {
  std::vector<std::byte> file = jpeg_file(160, 120, 1);
  ImageDecoder decoder;
  for (int64_t n : {2, 4, 8}) {
    decoder.open(file);
    DecodedPixels out = decoder.decode({40, 40, 80, 80}, n);
    EXPECT_EQ(out.reduction, n);
    EXPECT_LE(out.box.x, 40 / n);
    EXPECT_GE(out.box.x + out.box.width, 120 / n);
    EXPECT_LE(out.box.width, 160 / n);
  }
}

TEST(ImageDecoder, TellsJpegFromPngByContent) {
  ImageDecoder decoder;
  EXPECT_EQ(decoder.open(jpeg_file(30, 20, 1)).format, "JPEG");
  EXPECT_EQ(decoder.open(jpeg_file(30, 20, 1, 90, true)).channels, 1);
  std::vector<std::byte> png = png_file(30, 20, 1);
  ImageInfo info = decoder.open(png);
  EXPECT_EQ(info.format, "PNG");
  EXPECT_EQ(info.width, 30);
  std::vector<uint8_t> wanted = picture(30, 20, 1);
  DecodedPixels out = decoder.decode({0, 0, 30, 20});
  for (int64_t i = 0; i < 30 * 20; ++i) {
    for (int c = 0; c < 3; ++c) ASSERT_EQ(out.pixels[4 * i + c], wanted[3 * i + c]);
  }
}

TEST(ImageDecoder, MakesGreyImagesColoured) {
  ImageDecoder decoder;
  std::vector<std::byte> file = jpeg_file(20, 20, 1, 90, true);
  decoder.open(file);
  DecodedPixels out = decoder.decode({0, 0, 20, 20});
  for (int64_t i = 0; i < 400; ++i) ASSERT_EQ(out.pixels[4 * i], out.pixels[4 * i + 2]);
}

TEST(ImageDecoder, RefusesDamagedFilesAndGoesOn) {
  ImageDecoder decoder;
  std::vector<std::byte> file = jpeg_file(150, 117, 3), png = png_file(50, 50, 1);
  EXPECT_ERROR(decoder.open({}), DataError, "an empty file");
  std::vector<std::byte> text(100, std::byte{'a'});
  EXPECT_ERROR(decoder.open(text), DataError, "neither a JPEG nor a PNG");
  std::vector<std::byte> head(file.begin(), file.begin() + 30);
  EXPECT_ERROR(decoder.open(head), DataError, "header");
  std::vector<std::byte> half(file.begin(), file.begin() + static_cast<int64_t>(file.size() / 2));
  decoder.open(half);
  EXPECT_ERROR(decoder.decode({0, 0, 150, 117}), DataError, "cut off");
  std::vector<std::byte> half_png(png.begin(), png.begin() + static_cast<int64_t>(png.size() / 2));
  decoder.open(half_png);
  EXPECT_ERROR(decoder.decode({0, 0, 50, 50}), DataError, "damaged PNG");
  std::vector<std::byte> deep = file;  // 12 bits a sample, in the frame header
  for (std::size_t i = 0; i + 4 < deep.size(); ++i) {
    if (deep[i] == std::byte{0xff} && deep[i + 1] == std::byte{0xc0}) {
      deep[i + 4] = std::byte{12};
      break;
    }
  }
  EXPECT_ERROR(
      {
        decoder.open(deep);
        decoder.decode({0, 0, 150, 117});
      },
      DataError, "precision 12");
  decoder.open(file);  // the decoder is as good as new
  EXPECT_EQ(decoder.decode({0, 0, 150, 117}).box.width, 150);
}

}  // namespace
}  // namespace lockstep
