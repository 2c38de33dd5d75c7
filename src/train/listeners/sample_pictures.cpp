#include "train/listeners/sample_pictures.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

namespace {

constexpr int64_t kLargest = 128;          // pixels per side
constexpr int64_t kFrame = 3, kSpace = 4;  // around a picture, and between two
constexpr RgbColor kRight = {46, 160, 67}, kWrong = {207, 34, 46};

// Computes a pixel of the scaled picture: the mean of the pixels of `from` that it covers.
void scale_pixel(const RgbImage& from, int64_t side, int64_t x, int64_t y, uint8_t* out) {
  const int64_t left = x * from.width / side, top = y * from.height / side;
  const int64_t right = std::max(left + 1, (x + 1) * from.width / side);
  const int64_t bottom = std::max(top + 1, (y + 1) * from.height / side);
  for (int64_t channel = 0; channel < 3; ++channel) {
    int64_t sum = 0;
    for (int64_t v = top; v < bottom; ++v) {
      for (int64_t u = left; u < right; ++u) sum += from.at(u, v)[channel];
    }
    out[channel] = static_cast<uint8_t>(sum / ((right - left) * (bottom - top)));
  }
}

int64_t side_of(const RgbImage& picture) {
  const int64_t side = std::max(picture.width, picture.height);
  return side > kLargest ? kLargest : side * std::max<int64_t>(1, kLargest / side);
}

}  // namespace

std::optional<RgbImage> sample_grid(const std::vector<Sample>& samples) {
  std::vector<const Sample*> shown;
  int64_t side = 0;
  for (const Sample& sample : samples) {
    if (sample.picture == nullptr) continue;
    shown.push_back(&sample);
    side = std::max(side, side_of(*sample.picture));
  }
  if (shown.empty()) return std::nullopt;
  const auto count = std::ssize(shown);
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const int64_t rows = (count + columns - 1) / columns;
  const int64_t tile = side + 2 * kFrame + kSpace;
  RgbImage out(columns * tile + kSpace, rows * tile + kSpace);
  for (int64_t i = 0; i < count; ++i) {
    const Sample& sample = *shown[i];
    const int64_t x = kSpace + i % columns * tile, y = kSpace + i / columns * tile;
    out.fill(x, y, side + 2 * kFrame, side + 2 * kFrame,
             sample.output == sample.reference ? kRight : kWrong);
    for (int64_t v = 0; v < side; ++v) {
      for (int64_t u = 0; u < side; ++u) {
        scale_pixel(*sample.picture, side, u, v, out.at(x + kFrame + u, y + kFrame + v));
      }
    }
  }
  return out;
}

}  // namespace lockstep
