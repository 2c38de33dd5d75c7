#include "data/md5.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace lockstep {

namespace {

// RFC 1321, 3.4: the integer part of 2^32 times |sin(i)|, i in radians from 1.
const std::array<uint32_t, 64> kSines = [] {
  std::array<uint32_t, 64> out;
  for (int i = 0; i < 64; ++i) {
    out[i] = static_cast<uint32_t>(std::floor(4294967296.0 * std::abs(std::sin(i + 1.0))));
  }
  return out;
}();

constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

}  // namespace

void Md5::block(const unsigned char* p) {
  uint32_t words[16];
  for (int i = 0; i < 16; ++i) {
    words[i] = uint32_t{p[4 * i]} | uint32_t{p[4 * i + 1]} << 8 | uint32_t{p[4 * i + 2]} << 16 |
               uint32_t{p[4 * i + 3]} << 24;
  }
  auto [a, b, c, d] = std::to_array(state_);
  for (int i = 0; i < 64; ++i) {
    uint32_t mixed = 0;
    int word = 0;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d), word = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c), word = 5 * i + 1;
        break;
      case 2:
        mixed = b ^ c ^ d, word = 3 * i + 5;
        break;
      default:
        mixed = c ^ (b | ~d), word = 7 * i;
        break;
    }
    uint32_t sum = a + mixed + kSines[i] + words[word % 16];
    a = d, d = c, c = b, b += std::rotl(sum, kShifts[i / 16][i % 4]);
  }
  const uint32_t add[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) state_[i] += add[i];
}

void Md5::update(const void* data, std::size_t size) {
  auto p = static_cast<const unsigned char*>(data);
  std::size_t filled = total_ % 64;
  total_ += size;
  if (filled > 0) {
    std::size_t take = std::min(size, 64 - filled);
    std::memcpy(buffer_ + filled, p, take);
    p += take;
    size -= take;
    if (filled + take < 64) return;
    block(buffer_);
  }
  for (; size >= 64; p += 64, size -= 64) block(p);
  std::memcpy(buffer_, p, size);
}

std::string Md5::hex() {
  uint64_t bits = total_ * 8;
  const unsigned char pad[64] = {0x80};
  update(pad, 1 + (119 - total_ % 64) % 64);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(bits >> (8 * i));
  update(length, 8);
  std::string out;
  for (uint32_t word : state_) {
    for (int shift = 0; shift < 32; shift += 8) out += fmt::format("{:02x}", (word >> shift) & 255);
  }
  return out;
}

std::string md5_of_file(const fs::path& path) {
  MappedFile file(path);
  Md5 hash;
  hash.update(file.bytes().data(), file.bytes().size());
  return hash.hex();
}

}  // namespace lockstep
