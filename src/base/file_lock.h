// A lock on a file (flock) that only one process has at a time. The kernel releases it when the
// process ends, however it ends.
#pragma once

#include <filesystem>

#include "base/descriptor.h"
#include "base/error.h"

namespace lockstep {

// The file system of a lock's file has no locks.
class NoLocks : public MachineError {
  using MachineError::MachineError;
};

class FileLock {
 public:
  // Opens the file, which is made where it is not there. Throws MachineError.
  explicit FileLock(const std::filesystem::path& path);

  // These throw NoLocks.
  bool try_lock();  // false: another process has it
  void lock();      // waits for it
  void unlock();    // also for processes that were forked with it

  int descriptor() const { return file_.get(); }  // for reading and writing

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace lockstep
