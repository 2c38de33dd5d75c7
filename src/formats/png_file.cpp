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

std::string encode_png(const RgbImage& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string out(size, '\0');
  if (::png_image_write_to_memory(&header, out.data(), &size, /*convert_to_8_bit=*/0,
                                  image.pixels.data(), /*row_stride=*/0, nullptr) == 0) {
    throw MachineError("libpng: cannot write {} x {} pixels: {}", image.width, image.height,
                       header.message);
  }
  out.resize(size);
  return out;
}

}  // namespace lockstep
