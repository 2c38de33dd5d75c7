// Treats the pixels of all images as one sequence of places, in which each tap of a convolution
// lies at a fixed distance: for a kernel of 3 x 3, a column of zeros follows every line and a line
// of zeros every image. With stride 2 the places are those of the result, and x is four such
// sequences, its planes: the pixels of even and of odd lines and columns.
#pragma once

#include <cstdint>

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

struct PixelShape {
  int64_t images, height, width;  // of x
  int64_t taps;                   // 1 or 9
  int64_t stride;                 // 1, or 2 with 9 taps
};

class Pixels {
 public:
  explicit Pixels(const PixelShape& a)
      : stride_(a.stride),
        height_(a.height),
        width_(a.width),
        lines_((a.height - 1) / a.stride + 1),
        columns_((a.width - 1) / a.stride + 1),
        border_(a.taps == 1 ? 0 : 1),
        line_(columns_ + border_),
        image_((lines_ + border_) * line_),
        count_(a.images * image_) {}

  int64_t count() const { return count_; }
  int64_t planes() const { return stride_ * stride_; }
  // plane() returns the plane that a tap reads, shift() how far it reads from
  // the place of the result.
  int64_t plane(int64_t tap) const {
    return stride_ == 1 ? 0 : (tap / 3 == 1 ? 0 : 2) + (tap % 3 == 1 ? 0 : 1);
  }
  int64_t shift(int64_t tap) const {
    if (border_ == 0) return 0;
    const int64_t down = tap / 3 - 1, right = tap % 3 - 1;
    if (stride_ == 1) return down * line_ + right;
    return (down < 0 ? -line_ : 0) - (right < 0 ? 1 : 0);
  }
  int64_t largest_shift() const { return border_ == 0 ? 0 : line_ + 1; }

  // Calls f(i, pixel) for every place begin + i < end, where `pixel` is the number of the result's
  // pixel there, or -1 where the place holds zeros.
  template <class F>
  void walk(int64_t begin, int64_t end, const F& f) const {
    each(begin, end, [&](int64_t i, bool inside, int64_t image, int64_t line, int64_t column) {
      f(i, inside ? (image * lines_ + line) * columns_ + column : int64_t{-1});
    });
  }

  // The same, with the numbers of x's pixels in one of its planes.
  template <class F>
  void walk_plane(int64_t plane, int64_t begin, int64_t end, const F& f) const {
    const int64_t down = plane / 2, right = plane % 2;
    each(begin, end, [&](int64_t i, bool inside, int64_t image, int64_t line, int64_t column) {
      const int64_t y = line * stride_ + down, x = column * stride_ + right;
      f(i, inside && y < height_ && x < width_ ? (image * height_ + y) * width_ + x : int64_t{-1});
    });
  }

 private:
  template <class F>
  void each(int64_t begin, int64_t end, const F& f) const {
    int64_t at = begin;
    for (; at < end && at < 0; ++at) f(at - begin, false, 0, 0, 0);
    if (at >= end) return;
    int64_t image = at / image_, line = at % image_ / line_, column = at % line_;
    for (; at < end; ++at) {
      f(at - begin, at < count_ && line < lines_ && column < columns_, image, line, column);
      if (++column < line_) continue;
      column = 0;
      if (++line < lines_ + border_) continue;
      line = 0;
      ++image;
    }
  }

  int64_t stride_, height_, width_, lines_, columns_, border_, line_, image_, count_;
};

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
