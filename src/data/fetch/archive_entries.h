// Reads the files of an archive one after the other, or one of them by name, without unpacking to
// disk. The archive may be tar, zip or ar (a Debian package), plain or compressed; libarchive reads
// it.
#pragma once

#include <cstddef>
#include <functional>
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
  // Both constructors throw DataError when the input is not an archive.
  explicit ArchiveEntries(const fs::path& path);
  // Takes ownership of an archive in memory. `name` is for messages.
  ArchiveEntries(std::vector<std::byte> content, std::string name);

  // Goes to the next regular file and returns its path without "./"; nothing at the end. Throws
  // DataError when the archive is damaged or truncated.
  std::optional<std::string> next();
  // Goes to the next file whose path is `entry` or ends in "/" + `entry`. Throws DataError, with
  // the most similar name, when there is none.
  void find(const std::string& entry);

  std::vector<std::byte> read();  // returns the whole content of the current file
  // Reads up to `most` bytes of the current file and returns their number; 0 at its end. Throws
  // DataError when the archive is truncated or damaged.
  std::size_t read(char* to, std::size_t most);
  // Writes the whole content of the current file to `path`. Throws MachineError when it cannot.
  void write(const fs::path& path);
  // Reads the rest of the archive, because the checksums of the compression are at its end.
  void check_rest();

 private:
  void support();
  [[noreturn]] void fail() const;

  std::string name_, entry_, wanted_;
  std::vector<std::byte> content_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
};

// Writes the files of an archive whose paths `wanted` takes into `folder`, in the folders that they
// have there. Throws DataError for a path that leads out of it, MachineError when the disk refuses.
void unpack_archive(const fs::path& archive, const fs::path& folder,
                    const std::function<bool(const fs::path&)>& wanted);

// Returns the content of one file of an archive. ArchiveEntries::find defines `entry`.
std::string read_archived_file(const fs::path& archive, const std::string& entry);

// Returns the content of a compressed file (.xz, .gz, .zst, ...). A file that is not compressed is
// returned as it is. Throws DataError when the file is missing, damaged or truncated.
std::string read_compressed_file(const fs::path& path);

// Does the same for content in memory; `name` is for messages.
std::string decompressed(std::vector<std::byte> content, const std::string& name);

// Returns whether the name ends in .tar, .zip, .tar.gz, .tgz, .tar.xz, ...
bool is_archive_name(std::string_view file);
// Returns "train" for "train.tar.gz".
std::string archive_stem(const fs::path& path);

}  // namespace lockstep
