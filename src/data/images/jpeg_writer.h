// Encodes JPEG files with libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/images/image_operations.h"

namespace lockstep {

// `quality` is libjpeg's, 1 to 100. Below 95 colour has half the resolution in both directions
// (4:2:0), as is usual for photos, from 95 on the full resolution. With `grey` only the first
// channel is kept.
std::vector<std::byte> encode_jpeg(const ByteImage& image, int quality, bool grey);

}  // namespace lockstep
