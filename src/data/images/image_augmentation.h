// The augmentations of the cropped pixels of a training image: colour jitter, then RandAugment,
// like torchvision's ColorJitter and RandAugment on Pillow images.
#pragma once

#include <cstdint>
#include <vector>

#include "base/keyed_random.h"
#include "data/images/image_operations.h"
#include "data/images/images_config.h"

namespace lockstep {

// Changes brightness, contrast, saturation and hue in random order.
void jitter_colours(const ByteImage& image, const ImagesConfig& config, KeyedRandom& random);

// Applies RandAugment (Cubuk et al. 2020): `randaugment_operations` of 14 operations, drawn with
// repetition, all with the same magnitude and a random sign (torchvision's 31 magnitudes, nearest
// pixel, black outside the image).
void apply_randaugment(const ByteImage& image, const ImagesConfig& config, KeyedRandom& random,
                       std::vector<uint8_t>& space);

// Applies one of RandAugment's operations, given by its number in torchvision's order, 0 (identity)
// to 13 (equalize). `sign` is 1 or -1. Public for tests.
void apply_operation(const ByteImage& image, int64_t operation, int64_t magnitude, double sign,
                     std::vector<uint8_t>& space);
constexpr int64_t kAugmentOperations = 14;

struct ErasedBox {
  int64_t x = 0, y = 0, width = 0, height = 0;  // width 0: no box
};
// Draws a box like torchvision's RandomErasing with its defaults: 2 to 33 % of the area, ratio 0.3
// to 3.3.
ErasedBox random_erasing(int64_t size, double probability, KeyedRandom& random);

}  // namespace lockstep
