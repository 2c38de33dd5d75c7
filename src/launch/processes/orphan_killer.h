// A small process that outlives the launcher only to kill its ranks: it knows their process groups
// and waits for the channel from the launcher to close. However the launcher dies, even by SIGKILL,
// which it cannot handle, the kernel closes that channel, and no process of a rank stays behind.
// (PR_SET_PDEATHSIG alone reaches the ranks, not the processes that they started.)
#pragma once

#include <sys/types.h>

#include "base/cleanup_process.h"

namespace lockstep {

class OrphanKiller {
 public:
  // Starts the process, which can watch `most_groups` groups at a time. When this object, or the
  // process that holds it, ends, the groups still watched are killed. REQUIRES that no other thread
  // runs. Throws MachineError.
  explicit OrphanKiller(int most_groups);

  void watch(pid_t group);   // safe between fork and exec
  void forget(pid_t group);  // before its leader is reaped, as its number may then be reused

 private:
  void tell(pid_t number);
  CleanupProcess cleanup_;
};

}  // namespace lockstep
