#include "formats/png_file.h"

#include <png.h>

#include <algorithm>

#include "base/error.h"

namespace lockstep {

RgbImage::RgbImage(int64_t w, int64_t h, RgbColor color) : width(w), height(h) {
  pixels.resize(static_cast<std::size_t>(3 * w * h));
  fill(0, 0, w, h, color);
}

void RgbImage::fill(int64_t x, int64_t y, int64_t w, int64_t h, RgbColor color) {
  for (int64_t row = y; row < y + h; ++row) {
    for (int64_t column = x; column < x + w; ++column) {
      std::copy(color.begin(), color.end(), at(column, row));
    }
  }
}

namespace {

std::string encode(const uint8_t* pixels, int64_t width, int64_t height, png_uint_32 format) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(width);
  header.height = static_cast<png_uint_32>(height);
  header.format = format;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string out(size, '\0');
  if (::png_image_write_to_memory(&header, out.data(), &size, /*convert_to_8_bit=*/0, pixels,
                                  /*row_stride=*/0, nullptr) == 0) {
    throw MachineError("libpng: cannot write {} x {} pixels: {}", width, height, header.message);
  }
  out.resize(size);
  return out;
}

}  // namespace

std::string encode_png(const RgbImage& image) {
  return encode(image.pixels.data(), image.width, image.height, PNG_FORMAT_RGB);
}

std::string encode_grey_png(const uint8_t* pixels, int64_t width, int64_t height) {
  return encode(pixels, width, height, PNG_FORMAT_GRAY);
}

}  // namespace lockstep
