// Digests of bytes, by OpenSSL's libcrypto.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"

struct evp_md_ctx_st;  // libcrypto's EVP_MD_CTX

namespace lockstep {

// Of bytes that come in parts.
class Digest {
 public:
  static Digest sha256();  // FIPS 180-4
  static Digest md5();  // RFC 1321: it finds damage, not fraud. MachineError where it is forbidden.

  void update(const void* data, std::size_t size);
  std::string hex();  // finishes; call once

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

}  // namespace lockstep
