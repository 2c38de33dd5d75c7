// Computes CRC-32C (Castagnoli polynomial; RFC 3720 section 12.1), which TFRecord frames use.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

// Pass the checksum of the preceding bytes as `crc` (0 at the start) to get the checksum of both
// together.
uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);

// Applies the rotation and offset of TFRecord to the checksum, so that a checksum may be stored
// among the data it covers (tensorflow/core/lib/hash/crc32c.h).
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep
