// What a launcher tells of a job, on the console and in launch.jsonl
// (docs/run-folder.md#launchjsonl), in words for a person.
#pragma once

#include <chrono>
#include <string>

#include "launch/job/host_roster.h"
#include "launch/job/spot_notice.h"
#include "launch/processes/first_failure.h"

namespace lockstep {

struct LaunchEvent {
  std::string event;  // "start", "failure", "host_lost", ...
  std::string text;   // for a person; empty: not shown
  int host = -1, rank = -1;
  double seconds = -1;              // what the event measures; negative: nothing
  int exit_code = -1;               // of the rank that failed, or of the job; negative: none
  double cost = -1, per_hour = -1;  // spent by this launch so far, of all hosts; negative: unknown
  HostNotice notice = {};           // of "notice" and "notice_withdrawn"
};

// An attempt begins, on so many hosts of all. `waited`: since the failure before it, negative:
// none.
LaunchEvent start_event(const Attempt& attempt, std::size_t all_hosts, double waited);
// A rank failed; `name` as "rank 3 on b". `others_run`: they are stopped now.
LaunchEvent failure_event(const RankEnd& end, const std::string& name, bool others_run);
// The next attempt starts after the delay, restart `number` of `most` without progress.
LaunchEvent restart_event(int attempt, std::chrono::milliseconds delay, int number, int most);
// A signal stops the ranks, which have the grace time.
LaunchEvent stop_event(int signal, int ranks, std::chrono::milliseconds grace);
// The ranks' first step is done; after a failure it is said how long they stood still.
LaunchEvent first_step_event(const std::string& step, double seconds, bool after_failure);
// The budget is nearly spent; `ends`: so the ranks end now.
LaunchEvent budget_event(const std::string& spent, bool ends);

// What hosts do; an empty name is this machine.
LaunchEvent replaced_event(int host, const std::string& old, const std::string& name);
// `now`: hosts that the job goes on with.
LaunchEvent back_event(int host, const std::string& name, std::size_t now, std::size_t all_hosts);
LaunchEvent away_event(int host, const std::string& name);  // the job goes on without it
// Somebody else asked it, or one of its ranks, to stop.
LaunchEvent reclaimed_event(int host, const std::string& name, int signal);
// Its cloud takes it away, or withdraws that; `saves`: all ranks save a checkpoint now.
LaunchEvent notice_event(int host, const std::string& name, const HostNotice& notice, bool saves);

}  // namespace lockstep
