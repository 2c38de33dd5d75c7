// CRC-32C (Castagnoli polynomial; RFC 3720 section 12.1), as TFRecord frames need it.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

// `crc` of what came before (0 at the start) makes the checksum of both together.
uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);

// The rotation and offset that TFRecord applies, so that a checksum stored among the data it covers
// is no fixed point (tensorflow/core/lib/hash/crc32c.h).
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace lockstep
