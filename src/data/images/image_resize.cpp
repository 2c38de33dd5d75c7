#include "data/images/image_resize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/kernel_table.h"

namespace lockstep {

namespace {

constexpr double kOne = 1 << 22;  // 1 in the kernels' fixed-point format

double support_of(ResizeFilter filter) { return filter == ResizeFilter::kBilinear ? 1.0 : 2.0; }

double weight_at(ResizeFilter filter, double x) {
  x = std::abs(x);
  if (filter == ResizeFilter::kBilinear) return x < 1 ? 1 - x : 0;
  constexpr double kA = -0.5;  // Keys 1981, like Pillow
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0;
}

}  // namespace

ResizeFilter resize_filter(const std::string& name) {
  if (name == "bilinear") return ResizeFilter::kBilinear;
  if (name == "bicubic") return ResizeFilter::kBicubic;
  throw ConfigError("no interpolation \"{}\" (bilinear, bicubic)", name);
}

void ResizeAxis::plan(const ResizeSpan& span, int64_t low, int64_t high, ResizeFilter filter) {
  double scale = (span.end - span.begin) / static_cast<double>(span.size);
  double widening = std::max(scale, 1.0);
  double support = support_of(filter) * widening;
  taps_ = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  auto outputs = static_cast<std::size_t>(span.outputs);
  begins_.resize(outputs);
  counts_.resize(outputs);
  weights_.assign(outputs * static_cast<std::size_t>(taps_), 0);
  shares_.resize(static_cast<std::size_t>(taps_));
  double inverse = 1 / widening;
  // Pillow counts from the edge of the crop; doing the same gives the same rounding at borders.
  auto origin = static_cast<double>(low);
  for (std::size_t i = 0; i < outputs; ++i) {
    double center = span.begin - origin +
                    (static_cast<double>(span.first_output) + static_cast<double>(i) + 0.5) * scale;
    // Towards zero after 0.5 is added, as Pillow rounds.
    // NOLINTNEXTLINE(bugprone-incorrect-roundings)
    auto from = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    // NOLINTNEXTLINE(bugprone-incorrect-roundings)
    auto to = std::min<int64_t>(high - low, static_cast<int64_t>(center + support + 0.5));
    double sum = 0;
    for (int64_t k = 0; k < to - from; ++k) {
      double x = (static_cast<double>(k + from) - center + 0.5) * inverse;
      sum += shares_[static_cast<std::size_t>(k)] = weight_at(filter, x);
    }
    double factor = sum == 0 ? 1 : 1 / sum;
    int32_t* weights = weights_.data() + i * static_cast<std::size_t>(taps_);
    int64_t count = 1;  // without trailing zeros
    for (int64_t k = 0; k < to - from; ++k) {
      double share = shares_[static_cast<std::size_t>(k)] * factor;
      weights[k] = static_cast<int32_t>(share * kOne + (share < 0 ? -0.5 : 0.5));
      if (weights[k] != 0) count = k + 1;
    }
    begins_[i] = static_cast<int32_t>(from);
    counts_[i] = static_cast<int32_t>(count);
  }
  first_ = begins_.front();
  last_ = 0;
  for (std::size_t i = 0; i < outputs; ++i) {
    last_ = std::max<int64_t>(last_, begins_[i] + counts_[i]);
    begins_[i] -= static_cast<int32_t>(first_);
  }
  first_ += low;
  last_ += low;
}

ResizeAxisArgs ResizeAxis::args() const {
  return {.size = static_cast<int64_t>(begins_.size()),
          .taps = taps_,
          .begins = begins_.data(),
          .counts = counts_.data(),
          .weights = weights_.data()};
}

void ImageResizer::resize(const DecodedPixels& from, bool mirror, uint8_t* out,
                          int64_t out_stride) {
  int64_t rows = y.last() - y.first(), width = x.last() - x.first();
  ResizeRowsArgs horizontal{
      .axis = x.args(),
      .in = from.pixels + (y.first() - from.box.y) * from.stride + (x.first() - from.box.x) * 4,
      .in_stride = from.stride,
      .in_width = width,
      .out_stride = (3 * x.args().size + 64) / 64 * 64,
      .mirror = mirror};
  rows_.resize(static_cast<std::size_t>(rows * horizontal.out_stride));
  scratch_.resize(static_cast<std::size_t>(resize_rows_scratch(width)));
  horizontal.out = rows_.data();
  horizontal.scratch = scratch_.data();
  const ImageKernels& kernel = kernels().image;
  kernel.resize_rows(horizontal, 0, rows);
  ResizeColumnsArgs vertical{.axis = y.args(),
                             .in = rows_.data(),
                             .in_stride = horizontal.out_stride,
                             .out = out,
                             .out_stride = out_stride,
                             .width_bytes = 3 * x.args().size};
  kernel.resize_columns(vertical, 0, vertical.axis.size);
}

}  // namespace lockstep
