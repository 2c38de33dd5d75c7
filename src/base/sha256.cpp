#include "base/sha256_block.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cstring>

#include "base/file.h"

namespace lockstep {

namespace {

constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

namespace detail {

void sha256_block_portable(uint32_t* state, const unsigned char* p) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    w[i] = uint32_t{p[4 * i]} << 24 | uint32_t{p[4 * i + 1]} << 16 | uint32_t{p[4 * i + 2]} << 8 |
           uint32_t{p[4 * i + 3]};
  }
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = std::to_array<uint32_t, 8>(
      {state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]});
  for (int i = 0; i < 64; ++i) {
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t add[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += add[i];
}

#if defined(__x86_64__)

bool sha256_has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kShuffles = 1u << 9 | 1u << 19;  // SSSE3, SSE4.1
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kShuffles) != kShuffles) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0;
}

// The instructions keep the state as (a, b, e, f) and (c, d, g, h) and do two rounds each.
__attribute__((target("sha,ssse3,sse4.1"))) void sha256_block_instructions(uint32_t* state,
                                                                           const unsigned char* p) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto at = reinterpret_cast<__m128i*>(state);
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(at), 0xb1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(at + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
  const __m128i abef_before = abef, cdgh_before = cdgh;
  __m128i w[4];  // the next 16 words of the message schedule
  for (int i = 0; i < 4; ++i) {
    w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i), big_endian);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {  // four rounds each
    const __m128i round = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kRound.data()) + i);
    const __m128i sum = _mm_add_epi32(w[i % 4], round);
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    const __m128i between = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
    const __m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]), between);
    w[i % 4] = _mm_sha256msg2_epu32(next, w[(i + 3) % 4]);
  }
  low = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
  high = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
  _mm_storeu_si128(at, _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128(at + 1, _mm_alignr_epi8(high, low, 8));
}

#else

bool sha256_has_instructions() { return false; }

void sha256_block_instructions(uint32_t* state, const unsigned char* p) {
  sha256_block_portable(state, p);
}

#endif

}  // namespace detail

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::block(const unsigned char* p) {
  static const bool has_instructions = detail::sha256_has_instructions();
  if (has_instructions) {
    detail::sha256_block_instructions(state_, p);
  } else {
    detail::sha256_block_portable(state_, p);
  }
}

void Sha256::update(const void* data, std::size_t size) {
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

std::string Sha256::hex() {
  uint64_t bits = total_ * 8;
  const unsigned char pad[64] = {0x80};
  update(pad, 1 + (119 - total_ % 64) % 64);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  update(length, 8);
  std::string out;
  for (uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[(word >> shift) & 15];
  }
  return out;
}

std::string sha256_hex(std::span<const std::byte> data) {
  Sha256 hash;
  hash.update(data.data(), data.size());
  return hash.hex();
}

std::string sha256_of_file(const fs::path& path) {
  MappedFile file(path);
  return sha256_hex(file.bytes());
}

}  // namespace lockstep
