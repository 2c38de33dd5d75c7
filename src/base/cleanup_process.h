// A forked process that outlives this one and cleans up after it. It waits for the end of a pipe
// whose writing end only this process holds: the kernel closes that end however this process dies,
// even by SIGKILL.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/descriptor.h"

namespace lockstep {

class CleanupProcess {
 public:
  // Starts the process. It runs in its own session, with all signals blocked and no open descriptor
  // except the reading end of the pipe, which is passed to `work`. It exits when `work` returns.
  // REQUIRES: no other thread runs, or `work` makes only async-signal-safe calls. Throws
  // MachineError.
  CleanupProcess(const std::string& name, const std::function<void(int)>& work);
  // Closes the pipe and waits for the process to end.
  ~CleanupProcess();
  CleanupProcess(const CleanupProcess&) = delete;
  CleanupProcess& operator=(const CleanupProcess&) = delete;

  int channel() const { return channel_.get(); }  // for writing

 private:
  pid_t pid_ = -1;
  Descriptor channel_;
};

}  // namespace lockstep
