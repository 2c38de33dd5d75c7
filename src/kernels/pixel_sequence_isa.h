// The pixels of all images as one sequence in which a pixel's neighbours lie at fixed distances:
// for a kernel of 3 x 3 a column of zeros follows every line and a line of zeros every image.
#pragma once

#include <cstdint>

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

struct PixelShape {
  int64_t images, height, width;
  int64_t taps;  // 1 or 9
};

class Pixels {
 public:
  explicit Pixels(const PixelShape& a)
      : height_(a.height),
        width_(a.width),
        border_(a.taps == 1 ? 0 : 1),
        line_(a.width + border_),
        image_((a.height + border_) * line_),
        count_(a.images * image_) {}

  int64_t count() const { return count_; }
  int64_t line() const { return line_; }
  // How far a tap shifts x.
  int64_t shift(int64_t tap) const {
    return border_ == 0 ? 0 : (tap / 3 - 1) * line_ + tap % 3 - 1;
  }
  int64_t largest_shift() const { return border_ == 0 ? 0 : line_ + 1; }

  // Calls f(i, pixel) for every place begin + i < end of the sequence: the number of the pixel that
  // lies there, or -1 for zeros.
  template <class F>
  void walk(int64_t begin, int64_t end, const F& f) const {
    int64_t at = begin;
    for (; at < end && at < 0; ++at) f(at - begin, int64_t{-1});
    if (at >= count_) {
      for (; at < end; ++at) f(at - begin, int64_t{-1});
      return;
    }
    int64_t image = at / image_, line = at % image_ / line_, column = at % line_;
    for (; at < end; ++at) {
      const bool inside = at < count_ && line < height_ && column < width_;
      f(at - begin, inside ? (image * height_ + line) * width_ + column : int64_t{-1});
      if (++column < line_) continue;
      column = 0;
      if (++line < height_ + border_) continue;
      line = 0;
      ++image;
    }
  }

 private:
  int64_t height_, width_, border_, line_, image_, count_;
};

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
