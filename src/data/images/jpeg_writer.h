// Encodes JPEG files through libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/images/image_operations.h"

namespace lockstep {

// Quality 1 to 100 as libjpeg counts; colour at half the resolution both ways (4:2:0) below 95,
// as photos have it, in full from there on. `grey`: only the first channel is kept.
std::vector<std::byte> encode_jpeg(const ByteImage& image, int quality, bool grey);

}  // namespace lockstep
