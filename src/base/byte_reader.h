// Reads the bytes of a file one piece after the other; gzip files are unpacked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/file.h"

struct gzFile_s;  // of zlib

namespace lockstep {

class ByteReader {
 public:
  // Throws DataError for what is no file or cannot be opened.
  explicit ByteReader(const fs::path& path);

  // Writes up to `most` next bytes and returns their number; 0 at the end. Throws DataError, with
  // the number of lines before, where gzip data are damaged or cut short.
  std::size_t read(char* to, std::size_t most);

 private:
  fs::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file_;
  int64_t lines_ = 0;  // that ended in what was read
};

}  // namespace lockstep
