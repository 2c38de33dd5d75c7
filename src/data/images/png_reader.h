// Reads PNG files with libpng as 8-bit colour: palettes and grey are expanded, 16-bit channels keep
// their upper 8 bits, transparency is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images/image_decoder.h"

namespace lockstep {

// Reads the header. Throws DataError.
ImageInfo read_png_info(std::span<const std::byte> file);

// Writes all pixels as 4 bytes each (red, green, blue, unused): width * height * 4 bytes. Throws
// DataError when the file is damaged or truncated.
void read_png(std::span<const std::byte> file, std::span<uint8_t> pixels);

}  // namespace lockstep
