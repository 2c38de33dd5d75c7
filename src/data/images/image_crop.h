// Chooses the part of an image that is used: torchvision's RandomResizedCrop, RandomCrop with
// padding, and Resize with CenterCrop.
#pragma once

#include <cstdint>

#include "base/keyed_random.h"
#include "data/images/image_decoder.h"
#include "data/images/images_config.h"

namespace lockstep {

// Draws area and shape up to ten times until they fit. If none fits, takes the largest centred part
// with an allowed shape (Szegedy et al. 2015; torchvision's RandomResizedCrop.get_params).
PixelBox random_resized_crop(int64_t width, int64_t height, const ImagesConfig& config,
                             KeyedRandom& random);

// Draws `size` x `size` pixels of the image with `padding` around it, in coordinates of the image
// (so they start at -padding). Throws ConfigError when the padded image is smaller than the crop.
PixelBox random_padded_crop(int64_t width, int64_t height, int64_t size, int64_t padding,
                            KeyedRandom& random);

// The image is resized to `width` x `height`; of it `size` x `size` pixels from (x, y) on are used.
struct CenterCrop {
  int64_t width = 0, height = 0;
  int64_t x = 0, y = 0;
};
// `resize` is the shorter side before the crop; 0: unchanged. Throws ConfigError when the crop is
// larger than the resized image.
CenterCrop center_crop(int64_t width, int64_t height, int64_t resize, int64_t size);

}  // namespace lockstep
