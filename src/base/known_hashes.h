// SHA-256 of files, remembered in a file of this user's cache folder: a file is read again only
// when its identity (device, inode), size or times have changed. Where the cache cannot be kept,
// files are read each time.
//
//   SHA256 DAY DEVICE INODE SIZE MTIME CTIME PATH    a line a file; times in ns, DAY of the last
//   use
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>

#include "base/file.h"

namespace lockstep {

class KnownHashes {
 public:
  explicit KnownHashes(fs::path file = default_file());
  ~KnownHashes();  // keeps what was learned
  KnownHashes(const KnownHashes&) = delete;
  KnownHashes& operator=(const KnownHashes&) = delete;

  // Throws DataError when the file cannot be read.
  std::string sha256(const fs::path& path);
  int64_t bytes_read() const { return bytes_read_; }  // of files whose hash was not known

  // $XDG_CACHE_HOME/lockstep/hashes, else that of ~/.cache; empty without a home.
  static fs::path default_file();

 private:
  struct Entry {
    std::string sha256;
    int64_t day = 0;        // of the last use, since 1970
    std::string signature;  // device, inode, size and times
  };
  void read();

  fs::path file_;
  std::map<std::string, Entry> entries_;  // by absolute path
  int64_t today_ = 0, bytes_read_ = 0;
  bool changed_ = false;
};

}  // namespace lockstep
