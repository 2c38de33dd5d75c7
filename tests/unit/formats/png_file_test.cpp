#include "formats/png_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace lockstep {
namespace {

uint32_t number_at(const std::string& text, std::size_t at) {
  uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(text[at + i]);
  return out;
}

TEST(PngFile, HoldsThePixelsAndTheirChecksums) {
  RgbImage image(3, 2, {1, 2, 3});
  image.fill(1, 1, 2, 1, {250, 251, 252});
  const std::string png = encode_png(image);
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(number_at(png, 16), 3u);
  EXPECT_EQ(number_at(png, 20), 2u);
  EXPECT_EQ(png.substr(24, 5), std::string("\x08\x02\0\0\0", 5)) << "8 bits, colour";
  std::size_t at = 8;
  std::string data;
  std::vector<std::string> types;
  while (at < png.size()) {
    const uint32_t length = number_at(png, at);
    const std::string body = png.substr(at + 4, 4 + length);
    EXPECT_EQ(number_at(png, at + 8 + length), crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                                                     static_cast<uInt>(body.size())));
    types.push_back(body.substr(0, 4));
    if (types.back() == "IDAT") data += body.substr(4);
    at += 12 + length;
  }
  EXPECT_EQ(types, (std::vector<std::string>{"IHDR", "IDAT", "IEND"}));
  std::string lines(2 * (1 + 3 * 3), '?');
  uLongf size = lines.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(lines.data()), &size,
                       reinterpret_cast<const Bytef*>(data.data()), data.size()),
            Z_OK);
  const std::string dark = "\1\2\3", light = "\xfa\xfb\xfc", filter(1, '\0');
  EXPECT_EQ(lines, filter + dark + dark + dark + filter + dark + light + light);
}

}  // namespace
}  // namespace lockstep
