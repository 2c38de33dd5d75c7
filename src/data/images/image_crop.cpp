#include "data/images/image_crop.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace lockstep {

namespace {

// Rounds like Python's round(): ties to even.
int64_t rounded(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

[[noreturn]] void fail_too_small(int64_t width, int64_t height, int64_t size) {
  ConfigError error("an image of {} x {} pixels is smaller than the crop of {}", width, height,
                    size);
  error.set_advice(
      "a smaller images.size; or random_resized_crop and images.eval_resize: both "
      "enlarge");
  throw error;
}

}  // namespace

PixelBox random_resized_crop(int64_t width, int64_t height, const ImagesConfig& config,
                             KeyedRandom& random) {
  auto w = static_cast<double>(width), h = static_cast<double>(height);
  double log_ratio = std::log(config.crop_ratio);
  for (int attempt = 0; attempt < 10; ++attempt) {
    double area = w * h * random.uniform(config.crop_area, 1);
    double ratio = std::exp(random.uniform(-log_ratio, log_ratio));
    int64_t box_width = rounded(std::sqrt(area * ratio));
    int64_t box_height = rounded(std::sqrt(area / ratio));
    if (box_width < 1 || box_width > width || box_height < 1 || box_height > height) continue;
    int64_t y = random.below(height - box_height + 1), x = random.below(width - box_width + 1);
    return {x, y, box_width, box_height};
  }
  PixelBox box{0, 0, width, height};
  if (w / h < 1 / config.crop_ratio) {
    box.height = std::min(height, rounded(w * config.crop_ratio));
  } else if (w / h > config.crop_ratio) {
    box.width = std::min(width, rounded(h * config.crop_ratio));
  }
  box.x = (width - box.width) / 2;
  box.y = (height - box.height) / 2;
  return box;
}

PixelBox random_padded_crop(int64_t width, int64_t height, int64_t size, int64_t padding,
                            KeyedRandom& random) {
  int64_t free_x = width + 2 * padding - size, free_y = height + 2 * padding - size;
  if (free_x < 0 || free_y < 0) fail_too_small(width, height, size);
  int64_t y = random.below(free_y + 1), x = random.below(free_x + 1);
  return {x - padding, y - padding, size, size};
}

CenterCrop center_crop(int64_t width, int64_t height, int64_t resize, int64_t size) {
  CenterCrop out{width, height};
  if (resize > 0) {
    int64_t shorter = std::min(width, height), longer = std::max(width, height);
    longer = resize * longer / shorter;
    out.width = width <= height ? resize : longer;
    out.height = width <= height ? longer : resize;
  }
  if (out.width < size || out.height < size) fail_too_small(out.width, out.height, size);
  out.x = rounded(static_cast<double>(out.width - size) / 2);
  out.y = rounded(static_cast<double>(out.height - size) / 2);
  return out;
}

}  // namespace lockstep
