// What is done to the cropped pixels of a training image: colour jitter, then RandAugment, as
// torchvision's ColorJitter and RandAugment on Pillow images.
#pragma once

#include <cstdint>
#include <vector>

#include "base/keyed_random.h"
#include "data/images/image_operations.h"
#include "data/images/images_config.h"

namespace lockstep {

// Brightness, contrast, saturation and hue, in a drawn order.
void jitter_colours(const ByteImage& image, const ImagesConfig& config, KeyedRandom& random);

// Cubuk et al. 2020: `randaugment_operations` of 14, drawn with repetition, all with the one
// magnitude and a drawn sign (torchvision's 31 magnitudes, nearest pixel, black outside).
void apply_randaugment(const ByteImage& image, const ImagesConfig& config, KeyedRandom& random,
                       std::vector<uint8_t>& space);

// One of RandAugment's operations by its number in torchvision's order, 0 (identity) to 13
// (equalize); `sign` is 1 or -1. For tests too.
void apply_operation(const ByteImage& image, int64_t operation, int64_t magnitude, double sign,
                     std::vector<uint8_t>& space);
constexpr int64_t kAugmentOperations = 14;

struct ErasedBox {
  int64_t x = 0, y = 0, width = 0, height = 0;  // width 0: nothing
};
// torchvision's RandomErasing with its defaults: 2 to 33 % of the area, ratio 0.3 to 3.3.
ErasedBox random_erasing(int64_t size, double probability, KeyedRandom& random);

}  // namespace lockstep
