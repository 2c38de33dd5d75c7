// Which part of an image is seen: torchvision's RandomResizedCrop, RandomCrop with padding, and
// Resize with CenterCrop.
#pragma once

#include <cstdint>

#include "base/keyed_random.h"
#include "data/images/image_decoder.h"
#include "data/images/images_config.h"

namespace lockstep {

// Area and shape drawn up to ten times until they fit, else the largest centred part with a
// permitted shape (Szegedy et al. 2015; torchvision's RandomResizedCrop.get_params).
PixelBox random_resized_crop(int64_t width, int64_t height, const ImagesConfig& config,
                             KeyedRandom& random);

// `size` x `size` of the image with `padding` around it, in coordinates of the image (so from
// -padding on). Throws ConfigError when that is smaller than the crop.
PixelBox random_padded_crop(int64_t width, int64_t height, int64_t size, int64_t padding,
                            KeyedRandom& random);

// The image at `width` x `height`, of which `size` x `size` from (x, y) on are seen.
struct CenterCrop {
  int64_t width = 0, height = 0;
  int64_t x = 0, y = 0;
};
// `resize`: the shorter side before the crop; 0: as it is. Throws ConfigError when the crop is
// larger.
CenterCrop center_crop(int64_t width, int64_t height, int64_t resize, int64_t size);

}  // namespace lockstep
