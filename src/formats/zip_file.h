// Reads zip archives whose entries are stored without compression, as torch.save writes them
// (PKWARE's APPNOTE, sections 4.3 and 4.5: central directory, zip64). Files are memory-mapped.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "base/file.h"

namespace lockstep {

// Returns whether the file begins like a zip archive.
bool is_zip_file(const fs::path& path);

class ZipFile {
 public:
  // Throws DataError if the file is not a zip archive or is truncated, or if an entry is compressed
  // or lies outside the file.
  explicit ZipFile(const fs::path& path);

  const fs::path& path() const { return path_; }
  // Returns the bytes of each entry by its name. They live as long as this object.
  const std::map<std::string, std::span<const std::byte>>& entries() const { return entries_; }

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  std::span<const std::byte> at(uint64_t begin, uint64_t bytes, const char* what) const;
  void read_entries(uint64_t begin, uint64_t count);

  fs::path path_;
  MappedFile file_;
  std::map<std::string, std::span<const std::byte>> entries_;
};

}  // namespace lockstep
