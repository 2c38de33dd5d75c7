// The claim of rank 0 to its run folder, so that two processes never train in one: a job that a
// batch system started again while its old step still runs, tasks of a job array.
#pragma once

#include <chrono>

#include "base/file_lock.h"
#include "dist/rank/launch_environment.h"
#include "train/folder/run_folder.h"

namespace lockstep {

class RunLock {
 public:
  // Takes RUN/lock and writes into it who this is; a process that has it gets `patience` to end. A
  // restart by our own launcher only tries: the launcher ended the attempt before, or knows its
  // host to be lost. Where the file system has no locks, nothing is locked. Throws MachineError
  // when the other process is of the same job, ConfigError when it is of another one.
  RunLock(const RunFolder& folder, const LaunchEnvironment& environment,
          std::chrono::milliseconds patience);

 private:
  FileLock lock_;
};

}  // namespace lockstep
