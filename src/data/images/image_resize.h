// Antialiased resizing, bit for bit like Pillow's Image.resize for 8-bit images: each output is a
// weighted sum of inputs, with a filter that widens with the reduction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/images/image_decoder.h"
#include "kernels/image_kernels.h"

namespace lockstep {

enum class ResizeFilter { kBilinear, kBicubic };
ResizeFilter resize_filter(const std::string& name);  // "bilinear" or "bicubic"; else ConfigError

// Describes one axis: [begin, end) of the input becomes `size` outputs, of which only `outputs`
// from `first_output` on are computed.
struct ResizeSpan {
  double begin = 0, end = 0;
  int64_t size = 0;
  int64_t first_output = 0, outputs = 0;
};

// The weights of one axis. Memory is reused.
class ResizeAxis {
 public:
  // Inputs outside of [low, high) do not count, however wide the filter is.
  void plan(const ResizeSpan& span, int64_t low, int64_t high, ResizeFilter filter);

  int64_t first() const { return first_; }  // inputs [first, last) are used
  int64_t last() const { return last_; }
  ResizeAxisArgs args() const;  // `begins` are relative to first()

 private:
  int64_t first_ = 0, last_ = 0, taps_ = 0;
  std::vector<int32_t> begins_, counts_, weights_;
  std::vector<double> shares_;
};

// Resizes rows first, then columns. (Pillow 13 sometimes starts with the columns of an image that
// shrinks more in height than in width; because of the rounding in between this changes up to 4
// grey levels.) Owns the intermediate memory. Not thread-safe.
class ImageResizer {
 public:
  ResizeAxis x, y;  // the caller plans both

  // `from` must contain the inputs [x.first(), x.last()) x [y.first(), y.last()). Writes 3-byte
  // pixels, [y outputs, x outputs], with `out_stride` bytes from row to row. `mirror` exchanges
  // left and right.
  void resize(const DecodedPixels& from, bool mirror, uint8_t* out, int64_t out_stride);

 private:
  std::vector<uint8_t> rows_, scratch_;
};

}  // namespace lockstep
