// Small pictures of 8-bit colours and their encoding as PNG files, by libpng.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

using RgbColor = std::array<uint8_t, 3>;

struct RgbImage {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]

  RgbImage() = default;
  RgbImage(int64_t width, int64_t height, RgbColor color = {255, 255, 255});

  uint8_t* at(int64_t x, int64_t y) { return &pixels[static_cast<std::size_t>(y * width + x) * 3]; }
  const uint8_t* at(int64_t x, int64_t y) const {
    return &pixels[static_cast<std::size_t>(y * width + x) * 3];
  }
  // Fills a rectangle within the picture.
  void fill(int64_t x, int64_t y, int64_t width, int64_t height, RgbColor color);
};

// Both return a whole PNG file. REQUIRES: at least one pixel. Throw MachineError when libpng fails.
std::string encode_png(const RgbImage& image);
std::string encode_grey_png(const uint8_t* pixels, int64_t width,
                            int64_t height);  // [height, width]

}  // namespace lockstep
