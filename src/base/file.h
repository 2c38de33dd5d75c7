// File helpers: reading whole files, reading lines (plain or gzip), memory maps, atomic writes. All
// functions throw DataError for input that cannot be read and MachineError for failed writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path);

// Calls `visit` with each line, without its LF and without a CR before the LF. A last line without
// LF counts as a line. gzip data are recognized and unpacked. The file is streamed: `line` is valid
// only during the call. Line numbers start at 1.
void for_each_line(const fs::path& path,
                   const std::function<void(std::string_view line, int64_t number)>& visit);
std::vector<std::string> read_lines(const fs::path& path);

// Writes a temporary file beside the target, syncs and renames it: a reader sees the old file or
// the whole new one.
void write_file(const fs::path& path, std::string_view content);
// As write_file(), but returns false where a file of that name is there already: of several
// processes that try at once, one succeeds.
bool write_new_file(const fs::path& path, std::string_view content);
// Returns when the disk has what was written. Throws MachineError.
void sync_file(const fs::path& path);
void sync_folder(const fs::path& folder);  // makes renames in the folder durable

// A read-only memory map of a whole file. The destructor unmaps it.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const fs::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// A new folder in the system's temporary folder. The destructor removes it with its content.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace lockstep
