// A file that is written piece by piece and is whole or absent: it grows beside its target and is
// renamed into place at the end.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "base/file.h"

namespace lockstep {

class OutputFile {
 public:
  // Throws MachineError when the file beside the target cannot be created.
  explicit OutputFile(const fs::path& path);
  ~OutputFile();  // removes what was written unless finish() was called
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::size_t size);  // throws MachineError: disk full, and so on
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Replaces bytes that were written before; what follows is appended at the end again.
  void rewrite(int64_t offset, const void* data, std::size_t size);
  void finish();  // syncs and renames; nothing may be written after

 private:
  [[noreturn]] void fail(const char* what);

  fs::path path_, temporary_;
  std::FILE* file_ = nullptr;
};

}  // namespace lockstep
