#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"

namespace lockstep {

namespace {

void require_regular(const fs::path& path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw DataError("{}: no such file", path.string());
  if (fs::is_directory(status)) throw DataError("{}: is a folder, expected a file", path.string());
}

}  // namespace

std::string read_file(const fs::path& path) {
  require_regular(path);
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) throw DataError("{}: cannot be read: {}", path.string(), std::strerror(errno));
  std::string out;
  std::array<char, 1 << 16> buffer;
  while (true) {
    ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DataError("{}: cannot be read: {}", path.string(), std::strerror(errno));
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

MappedFile::MappedFile(const fs::path& path) {
  require_regular(path);
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) {
    throw DataError("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED)
    throw DataError("{}: cannot be mapped: {}", path.string(), std::strerror(errno));
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace lockstep
