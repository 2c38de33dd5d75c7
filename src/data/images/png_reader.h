// PNG files through libpng, as 8-bit colour: palettes and grey are expanded, of 16 bits the upper 8
// are taken, transparency is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images/image_decoder.h"

namespace lockstep {

// The header. Throws DataError.
ImageInfo read_png_info(std::span<const std::byte> file);

// All pixels, 4 bytes each (red, green, blue, unused), into width * height * 4 bytes.
// Throws DataError when the file is damaged or cut off.
void read_png(std::span<const std::byte> file, std::span<uint8_t> pixels);

}  // namespace lockstep
