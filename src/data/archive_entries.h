// All files of a tar or zip archive (plain or compressed: libarchive), one after the other.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

struct archive;

namespace lockstep {

class ArchiveEntries {
 public:
  // Both throw DataError when it is no archive.
  explicit ArchiveEntries(const fs::path& path);
  // An archive in memory, which this then owns; `name` is for messages.
  ArchiveEntries(std::vector<std::byte> content, std::string name);

  // The path of the next regular file, without "./"; nothing at the end. Throws DataError when the
  // archive is damaged or cut off.
  std::optional<std::string> next();
  std::vector<std::byte> read();  // its content

 private:
  void support();
  [[noreturn]] void fail() const;

  std::string name_, entry_;
  std::vector<std::byte> content_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
};

// .tar, .zip, .tar.gz, .tgz, .tar.xz, ...
bool is_archive_name(std::string_view file);
// "train" of "train.tar.gz".
std::string archive_stem(const fs::path& path);

}  // namespace lockstep
