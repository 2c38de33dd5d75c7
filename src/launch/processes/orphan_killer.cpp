#include "launch/processes/orphan_killer.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "launch/processes/descriptor.h"

namespace lockstep {

namespace {

// Runs the orphan killer, with async-signal-safe calls and memory from before the fork only.
// Messages are pid_t: positive to watch a group, negative to forget it.
void guard(int channel, std::vector<pid_t>& groups) {
  for (;;) {
    pid_t message = 0;
    ssize_t size = ::read(channel, &message, sizeof message);  // atomic: below PIPE_BUF
    if (size < 0 && errno == EINTR) continue;
    if (size != sizeof message) break;
    pid_t wanted = message > 0 ? 0 : -message;  // 0: a free slot
    auto place = std::find(groups.begin(), groups.end(), wanted);
    if (place != groups.end()) *place = message > 0 ? message : 0;
  }
  for (pid_t group : groups) {
    if (group > 0) ::kill(-group, SIGKILL);
  }
}

}  // namespace

OrphanKiller::OrphanKiller(int most_groups)
    : cleanup_("lockstep-killer",
               [groups = std::vector<pid_t>(static_cast<std::size_t>(most_groups), 0)](
                   int channel) mutable { guard(channel, groups); }) {}

void OrphanKiller::watch(pid_t group) { tell(group); }

void OrphanKiller::forget(pid_t group) { tell(-group); }

void OrphanKiller::tell(pid_t number) {
  write_all(cleanup_.channel(), {reinterpret_cast<const char*>(&number), sizeof number});
}

}  // namespace lockstep
