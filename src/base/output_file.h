// A file that is written in pieces but appears whole or not at all: it grows under a temporary name
// beside its target and is renamed at the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file_aside.h"

namespace lockstep {

class OutputFile {
 public:
  // Throws MachineError when the temporary file cannot be created.
  explicit OutputFile(const fs::path& path) : file_(path) {}

  void write(const void* data, std::size_t size);  // throws MachineError, e.g. for a full disk
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Replaces bytes that were written before. Later writes append at the end again.
  void rewrite(int64_t offset, const void* data, std::size_t size);
  void finish();  // syncs and renames the file; write nothing afterwards

 private:
  void flush();
  void put(const char* data, std::size_t size);

  FileAside file_;  // removed unless finish() was called
  std::string waiting_;
};

// Returns the error of any file that cannot be written; `cause` is an errno. Where a disk is full
// and the file is in a TemporaryFolder, it names the variable that leads elsewhere.
MachineError write_failure(const fs::path& path, int cause);

}  // namespace lockstep
