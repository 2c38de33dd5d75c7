// Brings a job to hosts that share nothing with this machine: the program, the configuration and
// what it names (docs/launch.md#launch---push).
#pragma once

#include <memory>

#include "commands/launch/push_turn.h"
#include "commands/shared/command_line.h"
#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

struct PushWishes {
  HostList hosts;
  RemoteOptions remote;
  std::string folder;  // --cwd; empty: ~/lockstep/NAME, where NAME is that of this folder
  int min_hosts = 0;   // so many are enough; 0: all
  bool joins = false;  // hosts for a launch that has begun: it has its turn already
  Arguments command;   // after "--": "train CONFIG key=value"; empty: only the program goes there
};

// A job as the hosts have it.
struct JobOnHosts {
  HostList hosts;          // those that have everything, in the order given
  std::string folder;      // to work in, the same text on every host: "~/lockstep/nmt", "/data/nmt"
  std::string program;     // "~/.lockstep/HASH/lockstep", or what --program-on-hosts says
  Arguments command;       // the words to run there: paths are those of the hosts
  std::string run_folder;  // run.folder as the hosts have it; empty: no training
  std::shared_ptr<PushTurn> turn;  // of a training, to be ended when its ranks run; else null
};

// Sends what the hosts lack, all at once, and says on standard error what it sent. Throws
// ConfigError for a configuration that is wrong, MachineError that names every host that cannot be
// made ready unless min_hosts others can; nothing is started then.
JobOnHosts push_job(const PushWishes& wishes);

}  // namespace lockstep
