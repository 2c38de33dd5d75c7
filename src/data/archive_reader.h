// One file out of a tar archive (plain or compressed: libarchive), read without unpacking the rest.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/file.h"

struct archive;

namespace lockstep {

class ArchiveReader {
 public:
  // Goes to the first entry whose path is `entry` or ends in "/" + `entry`. Throws DataError when
  // the archive is missing, damaged or holds no such file (with the nearest name).
  ArchiveReader(const fs::path& path, const std::string& entry);

  // The next bytes of the file, `most` of them or fewer; 0 at its end. Throws DataError when the
  // archive ends too early or is damaged.
  std::size_t read(char* to, std::size_t most);

  // Reads what follows to the end of the archive: the checksums of its compression stand there.
  void check_rest();

 private:
  void find_entry();
  [[noreturn]] void fail() const;

  fs::path path_;
  std::string entry_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
};

// The whole of one file.
std::string read_archived_file(const fs::path& archive, const std::string& entry);

}  // namespace lockstep
