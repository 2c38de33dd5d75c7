// A small process that outlives the launcher only to end its ranks: it knows their process groups
// and waits for the channel from the launcher to end. However the launcher dies - also by SIGKILL,
// which it cannot handle - the kernel closes that channel, and no process of a rank stays behind.
// (PR_SET_PDEATHSIG alone reaches the ranks, not the processes that they started.)
#pragma once

#include <sys/types.h>

#include "base/cleanup_process.h"

namespace lockstep {

class OrphanKiller {
 public:
  // Starts it. REQUIRES: no other thread runs. `most_groups`: how many it can watch at a time.
  // Its end kills the groups that are still watched. Throws MachineError.
  explicit OrphanKiller(int most_groups);

  void watch(pid_t group);   // safe between fork and exec
  void forget(pid_t group);  // before its leader is reaped: the number may be used again after that

 private:
  void tell(pid_t number);
  CleanupProcess cleanup_;
};

}  // namespace lockstep
