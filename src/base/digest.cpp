#include "base/digest.h"

#include <openssl/evp.h>

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
  std::string out;
  for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

std::string sha256_hex(std::span<const std::byte> data) {
  Digest digest = Digest::sha256();
  digest.update(data.data(), data.size());
  return digest.hex();
}

std::string sha256_of_file(const fs::path& path) { return hex_of_file(Digest::sha256(), path); }
std::string md5_of_file(const fs::path& path) { return hex_of_file(Digest::md5(), path); }

}  // namespace lockstep
