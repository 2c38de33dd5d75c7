// MD5 (RFC 1321), for archives whose publishers name no better checksum; it finds damage, not
// fraud.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/file.h"

namespace lockstep {

// Incremental.
class Md5 {
 public:
  void update(const void* data, std::size_t size);
  std::string hex();  // finishes; call once

 private:
  void block(const unsigned char* p);

  uint32_t state_[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  unsigned char buffer_[64];
  uint64_t total_ = 0;
};

std::string md5_of_file(const fs::path& path);

}  // namespace lockstep
