// One after the other: launches of one user that bring files to the same folder of the same host.
// The next one looks at the files there only when the ranks of the one before have taken a step,
// and so sees what they read.
#pragma once

#include <string>
#include <vector>

#include "base/file_lock.h"
#include "launch/hosts/host_list.h"

namespace lockstep {

class PushTurn {
 public:
  // Waits for the launches before, and says so on standard error. Their locks are files in
  // $XDG_CACHE_HOME/lockstep/pushes; where these cannot be made or locked, nothing is waited for.
  PushTurn(const std::vector<Host>& hosts, const std::string& folder);
  PushTurn(const PushTurn&) = delete;
  PushTurn& operator=(const PushTurn&) = delete;

  void end();  // the next one's; also at the end of this process, however it ends

 private:
  std::vector<FileLock> locks_;
};

}  // namespace lockstep
