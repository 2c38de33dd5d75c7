#include "data/images/image_augmentation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace lockstep {

namespace {

constexpr double kMostMagnitude = 30;

double jitter_factor(double strength, KeyedRandom& random) {
  return random.uniform(std::max(0.0, 1 - strength), 1 + strength);
}

}  // namespace

void jitter_colours(const ByteImage& image, const ImagesConfig& config, KeyedRandom& random) {
  std::array<int, 4> order{0, 1, 2, 3};
  for (int i = 3; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  // All factors are drawn, used or not, and always in this sequence.
  double brightness = jitter_factor(config.brightness, random);
  double contrast = jitter_factor(config.contrast, random);
  double saturation = jitter_factor(config.saturation, random);
  double hue = random.uniform(-config.hue, config.hue);
  for (int which : order) {
    if (which == 0 && config.brightness > 0) adjust_brightness(image, brightness);
    if (which == 1 && config.contrast > 0) adjust_contrast(image, contrast);
    if (which == 2 && config.saturation > 0) adjust_saturation(image, saturation);
    if (which == 3 && config.hue > 0) adjust_hue(image, hue);
  }
}

void apply_operation(const ByteImage& image, int64_t operation, int64_t magnitude, double sign,
                     std::vector<uint8_t>& space) {
  double share = static_cast<double>(magnitude) / kMostMagnitude;
  auto pixels = [&](int64_t side) {  // translation; Cubuk et al. use images of 331 pixels
    return std::trunc(sign * share * 150.0 / 331.0 * static_cast<double>(side));
  };
  double factor = 1 + sign * share * 0.9;
  switch (operation) {
    case 0:
      return;
    case 1:
      return transform_affine(image, {1, sign * share * 0.3, 0, 0, 1, 0}, space);
    case 2:
      return transform_affine(image, {1, 0, 0, sign * share * 0.3, 1, 0}, space);
    case 3:
      return transform_affine(image, {1, 0, -pixels(image.width), 0, 1, 0}, space);
    case 4:
      return transform_affine(image, {1, 0, 0, 0, 1, -pixels(image.height)}, space);
    case 5:
      return transform_affine(image, rotation_matrix(image, sign * share * 30), space);
    case 6:
      return adjust_brightness(image, factor);
    case 7:
      return adjust_saturation(image, factor);
    case 8:
      return adjust_contrast(image, factor);
    case 9:
      return adjust_sharpness(image, factor, space);
    case 10:
      return posterize(image, 8 - static_cast<int>(std::nearbyint(share * 4)));
    case 11:
      return solarize(image, 255 - share * 255);
    case 12:
      return stretch_contrast(image);
    default:
      return equalize(image);
  }
}

void apply_randaugment(const ByteImage& image, const ImagesConfig& config, KeyedRandom& random,
                       std::vector<uint8_t>& space) {
  for (int64_t i = 0; i < config.randaugment_operations; ++i) {
    int64_t operation = random.below(kAugmentOperations);
    double sign = random.chance(0.5) ? -1 : 1;
    apply_operation(image, operation, config.randaugment_magnitude, sign, space);
  }
}

ErasedBox random_erasing(int64_t size, double probability, KeyedRandom& random) {
  if (!random.chance(probability)) return {};
  double log_low = std::log(0.3), log_high = std::log(3.3);
  auto area = static_cast<double>(size * size);
  for (int attempt = 0; attempt < 10; ++attempt) {
    double part = area * random.uniform(0.02, 0.33);
    double ratio = std::exp(random.uniform(log_low, log_high));
    auto height = static_cast<int64_t>(std::nearbyint(std::sqrt(part * ratio)));
    auto width = static_cast<int64_t>(std::nearbyint(std::sqrt(part / ratio)));
    if (height < 1 || width < 1 || height >= size || width >= size) continue;
    int64_t y = random.below(size - height + 1), x = random.below(size - width + 1);
    return {x, y, width, height};
  }
  return {};
}

}  // namespace lockstep
