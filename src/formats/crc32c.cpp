#include "formats/crc32c.h"

#include <array>

namespace lockstep {

namespace {

constexpr uint32_t kReversedPolynomial = 0x82F63B78;  // 0x1EDC6F41, bits reversed
constexpr uint32_t kMaskOffset = 0xA282EAD8;

// The table processes one byte per step: event files are small, and this needs no special
// instruction.
constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? kReversedPolynomial : 0);
    }
    table[byte] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t crc) {
  crc = ~crc;
  for (char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + kMaskOffset;
}

}  // namespace lockstep
