// A large file that is written in pieces and appears whole or not at all, as OutputFile's do. It
// goes past the system's page cache where the file system lets it (O_DIRECT), which saves a copy
// and the pages for it, and its SHA-256 is taken on the way, while the disk writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "base/digest.h"
#include "base/file_aside.h"

namespace lockstep {

struct WrittenFile {
  int64_t bytes = 0;
  std::string sha256;  // in hexadecimal
};

class LargeFile {
 public:
  // Throws MachineError when the temporary file cannot be created.
  explicit LargeFile(const fs::path& path);
  ~LargeFile();
  LargeFile(const LargeFile&) = delete;
  LargeFile& operator=(const LargeFile&) = delete;

  void write(const void* data, std::size_t size);  // throws MachineError, e.g. for a full disk
  WrittenFile finish();  // syncs and renames the file; write nothing afterwards

 private:
  struct FreePages {
    void operator()(std::byte* pages) const;
  };
  using Block = std::unique_ptr<std::byte, FreePages>;

  void flush();
  void wait();

  FileAside file_;       // removed unless finish() was called
  bool direct_ = false;  // it has O_DIRECT
  int64_t bytes_ = 0;    // handed to the disk
  Digest digest_ = Digest::sha256();
  Block filling_, full_;  // one is filled while the other is written
  std::size_t filled_ = 0;
  std::future<int> writing_;  // of full_; errno, or 0
};

}  // namespace lockstep
