// What all files of token ids have in common: the width of an id and the hash of the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// Returns the bytes of an id in a file: 2 for a vocabulary of at most 65,536, else 4.
uint32_t token_id_bytes(int32_t vocab_size);
uint64_t padded_to_8(uint64_t bytes);

// Writes 32 bytes. Throws std::invalid_argument unless `hex` is 64 lower-case hexadecimal digits.
void sha256_to_bytes(const std::string& hex, unsigned char* out);
std::string sha256_of_bytes(const unsigned char* bytes);  // of 32 bytes

class OutputFile;

// Writes ids in the width of token_id_bytes(). Throws std::invalid_argument for an id outside the
// vocabulary. `narrow` is a buffer for 16-bit ids.
void write_token_ids(OutputFile& file, std::span<const int32_t> ids, int32_t vocab_size,
                     std::vector<uint16_t>& narrow);

// Returns the id stored at `from`.
inline uint32_t read_token_id(const std::byte* from, uint32_t id_bytes) {
  if (id_bytes == 2) {
    uint16_t id = 0;
    std::memcpy(&id, from, sizeof id);
    return id;
  }
  uint32_t id = 0;
  std::memcpy(&id, from, sizeof id);
  return id;
}

}  // namespace lockstep
