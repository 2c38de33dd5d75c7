#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/byte_reader.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/output_file.h"

namespace lockstep {

namespace {

std::string why() { return std::strerror(errno); }

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
  if (fd.get() < 0) throw DataError("{}: cannot be read: {}", path.string(), why());
  std::string out;
  std::array<char, 1 << 16> buffer;
  while (true) {
    ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DataError("{}: cannot be read: {}", path.string(), why());
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

void for_each_line(const fs::path& path,
                   const std::function<void(std::string_view, int64_t)>& visit) {
  ByteReader bytes(path);
  std::string pending;
  std::vector<char> buffer(1 << 17);
  int64_t number = 0;
  auto emit = [&](std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    visit(line, ++number);
  };
  while (std::size_t n = bytes.read(buffer.data(), buffer.size())) {
    std::string_view rest(buffer.data(), n);
    for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
      if (pending.empty()) {
        emit(rest.substr(0, end));
      } else {
        pending.append(rest.substr(0, end));
        emit(pending);
        pending.clear();
      }
      rest.remove_prefix(end + 1);
    }
    pending.append(rest);
  }
  if (!pending.empty()) emit(pending);
}

std::vector<std::string> read_lines(const fs::path& path) {
  std::vector<std::string> out;
  for_each_line(path, [&](std::string_view line, int64_t) { out.emplace_back(line); });
  return out;
}

void sync_folder(const fs::path& folder) {
  Descriptor fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) {
    throw MachineError("{}: cannot be synced to disk: {}", folder.string(), why());
  }
}

void write_file(const fs::path& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  file.finish();
}

MappedFile::MappedFile(const fs::path& path) {
  require_regular(path);
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) {
    throw DataError("{}: cannot be read: {}", path.string(), why());
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) throw DataError("{}: cannot be mapped: {}", path.string(), why());
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

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "lockstep-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw MachineError("{}: cannot be created: {}", pattern, why());
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace lockstep
