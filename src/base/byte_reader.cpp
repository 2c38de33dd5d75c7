#include "base/byte_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lockstep {

ByteReader::ByteReader(const fs::path& path) : path_(path), file_(nullptr, ::gzclose) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw DataError("{}: no such file", path.string());
  if (fs::is_directory(status)) throw DataError("{}: is a folder, expected a file", path.string());
  // zlib passes plain files through unchanged and unpacks gzip files, also those of several
  // members.
  file_.reset(::gzopen(path.c_str(), "rb"));
  if (!file_) throw DataError("{}: cannot be read: {}", path.string(), std::strerror(errno));
  ::gzbuffer(file_.get(), 1 << 17);
}

std::size_t ByteReader::read(char* to, std::size_t most) {
  const int n = ::gzread(file_.get(), to, static_cast<unsigned>(most));
  if (n > 0) {
    lines_ += std::count(to, to + n, '\n');
    return static_cast<std::size_t>(n);
  }
  int code = Z_OK;
  const char* message = ::gzerror(file_.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END) {
    throw DataError("{}: damaged after line {}: {}", path_.string(), lines_,
                    code == Z_BUF_ERROR ? "the compressed data end too early" : message);
  }
  return 0;
}

}  // namespace lockstep
