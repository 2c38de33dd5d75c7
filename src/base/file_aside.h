// A file that is made beside its target, and takes its place when it is complete or not at all.
#pragma once

#include <cstddef>

#include "base/file.h"

namespace lockstep {

class FileAside {
 public:
  // Throws MachineError when it cannot be created.
  explicit FileAside(const fs::path& path);
  ~FileAside();  // removes it unless take_place() was called
  FileAside(const FileAside&) = delete;
  FileAside& operator=(const FileAside&) = delete;

  int descriptor() const { return file_; }
  void take_place();  // syncs it and gives it the target's name; throws MachineError
  // Throws MachineError: the target cannot be `what`, such as "written". `cause` is an errno.
  [[noreturn]] void fail(const char* what, int cause) const;

 private:
  fs::path path_, temporary_;
  int file_ = -1;
};

}  // namespace lockstep
