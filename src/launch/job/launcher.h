// Starts the ranks of one job, on this machine or through agents on others, watches them and stops
// them. The first failure ends all ranks, with restarts as launch/job/supervisor.h decides, and no
// process stays behind however the launcher itself ends. It has one thread and one event loop.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launch/ending/ending_options.h"
#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"
#include "launch/job/host_finder.h"
#include "launch/job/launch_outcome.h"
#include "launch/job/notice_watch.h"
#include "launch/job/rank_set.h"
#include "launch/job/supervisor.h"
#include "launch/processes/rank_output.h"

namespace lockstep {

struct Launch {
  int ranks = 1;                     // here, 1 to kMostLocalRanks; with hosts, on all of them
  std::vector<std::string> command;  // program and arguments, the same for all ranks; an empty
                                     // program is lockstep itself
  bool pin = false;                  // gives each rank an equal share of the cores
  RankOutput::Options output;
  SupervisorOptions supervision;
  std::filesystem::path events;  // launch.jsonl; empty: none

  // For several hosts; empty means this machine.
  HostList hosts;
  RemoteOptions remote;
  std::string folder;                       // of the ranks, on every host; "~/...": below its home
  std::string interface;                    // of all hosts for traffic; empty: the route decides
  std::vector<std::string> environment;     // NAME=value, set for all ranks
  bool needs_gpus = false;                  // one for each rank
  std::chrono::milliseconds silence{5000};  // of a host, after which it counts as lost
  std::vector<std::string> agent_words;     // further arguments for each agent

  HostFinderOptions finder;  // of machines that come later
  SpotOptions spot;          // notices of the hosts' clouds
  EndingOptions ending;      // who is told, what follows, what it may cost

  std::function<void(const LaunchEvent&)> on_event;  // told each; empty: nobody is
};

// Runs until the last rank has ended and what `ending` asks for is done. SIGINT, SIGTERM and SIGHUP
// become SIGTERM for the ranks, which then have the grace time; a second SIGINT kills them at once.
// REQUIRES that no other thread runs (it blocks the signals and forks). Throws ConfigError, before
// anything is started, for a missing program, a bad number of ranks, or more ranks than cores when
// pinned; MachineError when the system refuses, or hosts are missing at the first start.
LaunchOutcome run_launch(const Launch& launch);

}  // namespace lockstep
