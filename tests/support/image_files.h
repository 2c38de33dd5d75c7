// Encodes images for tests.
#pragma once

#include <png.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/images/image_operations.h"
#include "data/images/jpeg_writer.h"

namespace lockstep {

// Returns a smooth picture, different for every `seed`.
inline std::vector<uint8_t> picture(int64_t width, int64_t height, int seed) {
  std::vector<uint8_t> out;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        out.push_back(static_cast<uint8_t>((x * (2 + c) + y * (5 - c) + 37 * seed) % 256));
      }
    }
  }
  return out;
}

inline std::vector<std::byte> jpeg_file(int64_t width, int64_t height, int seed, int quality = 90,
                                        bool grey = false) {
  std::vector<uint8_t> pixels = picture(width, height, seed);
  return encode_jpeg({pixels.data(), width, height}, quality, grey);
}

inline std::vector<std::byte> png_file(int64_t width, int64_t height, int seed) {
  std::vector<uint8_t> pixels = picture(width, height, seed);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::vector<std::byte> out(size);
  png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr);
  return out;
}

inline void write_bytes(const fs::path& path, std::span<const std::byte> bytes) {
  fs::create_directories(path.parent_path());
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Writes `classes` classes with 5 images each in train and 2 in val.
inline void write_tree(const fs::path& root, int classes = 3, int64_t side = 40) {
  for (int c = 0; c < classes; ++c) {
    std::string name = "class" + std::to_string(c);
    for (int i = 0; i < 5; ++i) {
      write_bytes(root / "train" / name / ("img" + std::to_string(i) + ".JPEG"),
                  jpeg_file(side + 3 * i, side + 2 * c, 10 * c + i));
    }
    for (int i = 0; i < 2; ++i) {
      write_bytes(root / "val" / name / ("img" + std::to_string(i) + ".jpg"),
                  jpeg_file(side, side + 5, 100 + 10 * c + i));
    }
  }
}

}  // namespace lockstep
