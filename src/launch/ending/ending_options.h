// What `launch` shall do beside a run and when it is over (docs/launch.md#the-end-of-a-run).
#pragma once

#include <string>
#include <vector>

#include "launch/ending/notice.h"
#include "launch/ending/spending.h"

namespace lockstep {

// Switching hosts off: by the launcher's order after the end, and by a host itself when it hears
// nothing of a launcher any more.
struct PowerOptions {
  bool off = false;
  bool anyway = false;        // also where only these hosts have the newest checkpoint
  std::string command;        // a shell command; empty: what a system has for it
  double after_minutes = 15;  // without a word of a launcher
};

struct EndingOptions {
  std::vector<NotifyTarget> notify;
  std::string then;  // a shell command after a run that ended well; empty: none
  PowerOptions power;
  Spending spending;
  std::string run;        // run folder as the hosts have it; empty: the command is no training
  std::string run_here;   // the same on this machine; empty: none
  bool mirrored = false;  // the run copies its checkpoints elsewhere (checkpoint.mirror)
  bool detached = false;  // the launcher is on a host of the job
};

}  // namespace lockstep
