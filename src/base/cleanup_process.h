// A forked process that outlives this one to clean up after it: it waits for the end of a channel
// that only this process holds, and that the kernel closes however this process dies, by SIGKILL
// too.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/descriptor.h"

namespace lockstep {

class CleanupProcess {
 public:
  // Starts it. In it: a session of its own, all signals blocked, no descriptor but the channel's
  // reading end, which `work` is given; when `work` returns, it ends. REQUIRES: no other thread
  // runs, or `work` makes async-signal-safe calls only. Throws MachineError.
  CleanupProcess(const std::string& name, const std::function<void(int)>& work);
  // Ends the channel and waits for it.
  ~CleanupProcess();
  CleanupProcess(const CleanupProcess&) = delete;
  CleanupProcess& operator=(const CleanupProcess&) = delete;

  int channel() const { return channel_.get(); }  // for writing

 private:
  pid_t pid_ = -1;
  Descriptor channel_;
};

}  // namespace lockstep
