// The files of an archive - tar, zip or ar (a Debian package), plain or compressed (libarchive) -
// one after the other, or one of them by its name; nothing is unpacked to disk.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  // Goes on to the next file whose path is `entry` or ends in "/" + `entry`. Throws DataError when
  // none comes (with the nearest name of those that came).
  void find(const std::string& entry);

  std::vector<std::byte> read();  // the whole content of the file that was gone to
  // Its next bytes, `most` of them or fewer; 0 at its end. Throws DataError when the archive ends
  // too early or is damaged.
  std::size_t read(char* to, std::size_t most);
  // Goes through what follows to the end: the checksums of the compression stand there.
  void check_rest();

 private:
  void support();
  [[noreturn]] void fail() const;

  std::string name_, entry_, wanted_;
  std::vector<std::byte> content_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
};

// One file out of an archive, as ArchiveEntries::find takes it.
std::string read_archived_file(const fs::path& archive, const std::string& entry);

// The text of one compressed file (.xz, .gz, .zst, ...; one that is not compressed as it is).
// Throws DataError when it is missing, damaged or cut off.
std::string read_compressed_file(const fs::path& path);

// .tar, .zip, .tar.gz, .tgz, .tar.xz, ...
bool is_archive_name(std::string_view file);
// "train" of "train.tar.gz".
std::string archive_stem(const fs::path& path);

}  // namespace lockstep
