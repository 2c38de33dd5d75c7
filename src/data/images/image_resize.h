// Antialiased resizing, bit for bit as Pillow's Image.resize for 8-bit images: each output is a sum
// over the inputs under a filter that widens with the reduction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/images/image_decoder.h"
#include "kernels/image_kernels.h"

namespace lockstep {

enum class ResizeFilter { kBilinear, kBicubic };
ResizeFilter resize_filter(const std::string& name);  // "bilinear", "bicubic"; ConfigError

// Along one axis, [begin, end) of the input becomes `size` outputs, of which only those from
// `first_output` on are made.
struct ResizeSpan {
  double begin = 0, end = 0;
  int64_t size = 0;
  int64_t first_output = 0, outputs = 0;
};

// The weights of one axis; memory is used again.
class ResizeAxis {
 public:
  // Inputs outside of [low, high) do not count, whatever the filter's width.
  void plan(const ResizeSpan& span, int64_t low, int64_t high, ResizeFilter filter);

  int64_t first() const { return first_; }  // inputs [first, last) are used
  int64_t last() const { return last_; }
  ResizeAxisArgs args() const;  // `begins` count from first()

 private:
  int64_t first_ = 0, last_ = 0, taps_ = 0;
  std::vector<int32_t> begins_, counts_, weights_;
  std::vector<double> shares_;
};

// Rows first, then columns. (Pillow 13 sometimes takes columns first where an image shrinks more in
// height than in width; with the rounding between the passes that is up to 4 grey levels.) Owns the
// memory between the two. For one thread at a time.
class ImageResizer {
 public:
  ResizeAxis x, y;  // planned by the caller

  // `from` must have the inputs [x.first(), x.last()) x [y.first(), y.last()). Writes 3-byte
  // pixels, [y outputs, x outputs], rows `out_stride` bytes apart; mirror: left and right
  // exchanged.
  void resize(const DecodedPixels& from, bool mirror, uint8_t* out, int64_t out_stride);

 private:
  std::vector<uint8_t> rows_, scratch_;
};

}  // namespace lockstep
