#include "formats/token_ids.h"

#include <fmt/format.h>

#include <bit>
#include <stdexcept>

#include "base/output_file.h"

namespace lockstep {

namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  throw std::invalid_argument("a SHA-256 needs 64 lower-case hexadecimal digits");
}

}  // namespace

uint32_t token_id_bytes(int32_t vocab_size) { return vocab_size <= (1 << 16) ? 2 : 4; }

uint64_t padded_to_8(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

void sha256_to_bytes(const std::string& hex, unsigned char* out) {
  if (hex.size() != 64) throw std::invalid_argument("a SHA-256 has 64 hexadecimal digits");
  for (int i = 0; i < 32; ++i) {
    out[i] = static_cast<unsigned char>(hex_digit(hex[2 * i]) * 16 + hex_digit(hex[2 * i + 1]));
  }
}

std::string sha256_of_bytes(const unsigned char* bytes) {
  std::string out;
  for (int i = 0; i < 32; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

void write_token_ids(OutputFile& file, std::span<const int32_t> ids, int32_t vocab_size,
                     std::vector<uint16_t>& narrow) {
  for (int32_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      throw std::invalid_argument(
          fmt::format("token id {} is outside the vocabulary of {}", id, vocab_size));
    }
  }
  if (token_id_bytes(vocab_size) == 2) {
    narrow.assign(ids.begin(), ids.end());
    file.write(narrow.data(), narrow.size() * sizeof(uint16_t));
  } else {
    file.write(ids.data(), ids.size_bytes());
  }
}

}  // namespace lockstep
