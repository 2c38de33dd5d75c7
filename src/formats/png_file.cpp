#include "formats/png_file.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"

namespace lockstep {

namespace {

std::string big_endian(uint32_t number) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 255);
  return out;
}

// A chunk has length, type, data, and a CRC of type and data (PNG specification, section 5.3).
std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc =
      ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(data.size())) + body +
         big_endian(static_cast<uint32_t>(crc));
}

std::string deflated(const std::string& text) {
  uLongf size = ::compressBound(text.size());
  std::string out(size, '\0');
  const int status = ::compress(reinterpret_cast<Bytef*>(out.data()), &size,
                                reinterpret_cast<const Bytef*>(text.data()), text.size());
  if (status != Z_OK) throw MachineError("zlib: cannot compress {} bytes", text.size());
  out.resize(size);
  return out;
}

}  // namespace

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
  std::string lines;
  for (int64_t y = 0; y < image.height; ++y) {
    lines += '\0';  // filter type 0: none
    lines.append(reinterpret_cast<const char*>(image.at(0, y)),
                 static_cast<std::size_t>(3 * image.width));
  }
  const std::string sides = big_endian(static_cast<uint32_t>(image.width)) +
                            big_endian(static_cast<uint32_t>(image.height));
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", sides + std::string("\x08\x02\0\0\0", 5)) +
         png_chunk("IDAT", deflated(lines)) + png_chunk("IEND", "");
}

}  // namespace lockstep
