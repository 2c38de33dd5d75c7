// Computes digests of bytes, also keyed ones, with OpenSSL's libcrypto.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"

struct evp_md_ctx_st;  // libcrypto's EVP_MD_CTX

namespace lockstep {

// Computes the digest of bytes that arrive in parts.
class Digest {
 public:
  static Digest sha256();  // FIPS 180-4
  static Digest md5();     // RFC 1321; against damage, not fraud. MachineError if forbidden

  void update(const void* data, std::size_t size);
  std::string hex();  // finishes the digest; call it once

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  explicit Digest(const char* algorithm);

  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::span<const std::byte> data);
std::string sha256_of_file(const fs::path& path);
std::string md5_of_file(const fs::path& path);

using HmacSha256 = std::array<unsigned char, 32>;
HmacSha256 hmac_sha256(std::string_view key, std::string_view text);  // RFC 2104
std::string to_hex(std::span<const unsigned char> bytes);             // in lower case

}  // namespace lockstep
