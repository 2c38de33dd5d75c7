#include "base/digest.h"

#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <new>

#include "base/error.h"

namespace lockstep {

namespace {

std::string hex_of_file(Digest digest, const fs::path& path) {
  const MappedFile file(path);
  digest.update(file.bytes().data(), file.bytes().size());
  return digest.hex();
}

}  // namespace

void Digest::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Digest::Digest(const char* algorithm) : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  const EVP_MD* method = EVP_get_digestbyname(algorithm);
  if (method != nullptr && EVP_DigestInit_ex(context_.get(), method, nullptr) == 1) return;
  throw MachineError("this machine's OpenSSL does not compute {}", algorithm);
}

Digest Digest::sha256() { return Digest("SHA256"); }
Digest Digest::md5() { return Digest("MD5"); }

void Digest::update(const void* data, std::size_t size) {
  EVP_DigestUpdate(context_.get(), data, size);
}

std::string Digest::hex() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(context_.get(), bytes, &size);
  return to_hex({bytes, size});
}

std::string sha256_hex(std::span<const std::byte> data) {
  Digest digest = Digest::sha256();
  digest.update(data.data(), data.size());
  return digest.hex();
}

std::string sha256_of_file(const fs::path& path) { return hex_of_file(Digest::sha256(), path); }
std::string md5_of_file(const fs::path& path) { return hex_of_file(Digest::md5(), path); }

HmacSha256 hmac_sha256(std::string_view key, std::string_view text) {
  HmacSha256 out;
  unsigned size = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &size);
  if (made == nullptr || size != out.size()) {
    throw MachineError("this machine's OpenSSL does not compute HMAC-SHA256");
  }
  return out;
}

std::string to_hex(std::span<const unsigned char> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace lockstep
