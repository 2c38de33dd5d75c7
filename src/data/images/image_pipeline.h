// Turns one encoded image into the 8-bit pixels that training or evaluation sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/images/image_augmentation.h"
#include "data/images/image_crop.h"
#include "data/images/image_decoder.h"
#include "data/images/image_resize.h"
#include "data/images/images_config.h"

namespace lockstep {

// Owns the memory of all stages and reuses it. Not thread-safe.
class ImagePipeline {
 public:
  explicit ImagePipeline(const ImagesConfig& config);  // `config` must outlive it

  // Both functions write [size, size, 3] to `out`. They throw DataError when the image cannot be
  // decoded and ConfigError when it is smaller than the crop.

  // Crops, mirrors and colours the image with the random numbers of `key`.
  void training(std::span<const std::byte> file, uint64_t key, int64_t size, uint8_t* out);
  // Resizes the shorter side to `resize` (0: unchanged), then crops the centre.
  void evaluation(std::span<const std::byte> file, int64_t resize, int64_t size, uint8_t* out);

 private:
  // Plans one axis of a resize of `length` pixels from `begin` on, in pixels of a decoding at
  // 1 / `reduction`, to `size`.
  void plan(ResizeAxis& axis, int64_t begin, int64_t length, int64_t reduction, int64_t size) const;
  void resized_crop(const PixelBox& box, int64_t size, bool mirror, uint8_t* out);
  void padded_crop(const PixelBox& box, int64_t size, bool mirror, uint8_t* out);

  const ImagesConfig& config_;
  ResizeFilter filter_;
  ImageDecoder decoder_;
  ImageResizer resizer_;
  std::vector<uint8_t> padded_, space_;
};

}  // namespace lockstep
