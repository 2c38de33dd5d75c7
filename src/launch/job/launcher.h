// Starts the ranks of one job, on this machine or through agents on others, watches them and stops
// them: the first failure ends all, restarts included (launch/job/supervisor.h decides), and no
// process stays behind however the launcher itself ends. One thread, one loop.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"
#include "launch/job/rank_set.h"
#include "launch/job/supervisor.h"
#include "launch/processes/first_failure.h"
#include "launch/processes/rank_output.h"

namespace lockstep {

struct Launch {
  int ranks = 1;                     // on this machine, 1 to kMostLocalRanks; with hosts, theirs
  std::vector<std::string> command;  // program and arguments, the same for all ranks; an empty
                                     // program is lockstep itself
  bool pin = false;                  // an equal share of the cores for each rank
  RankOutput::Options output;
  SupervisorOptions supervision;
  std::filesystem::path events;  // launch.jsonl; empty: none

  // Over several hosts, empty: on this machine.
  HostList hosts;
  RemoteOptions remote;
  std::string folder;                       // that ranks work in, on every host
  std::string interface;                    // that all hosts talk over; empty: the route decides
  std::vector<std::string> environment;     // NAME=value that travels to all ranks
  bool needs_gpus = false;                  // each rank one of its own
  std::chrono::milliseconds silence{5000};  // of a host, that means that it is lost
};

struct LaunchOutcome {
  int exit_code = 0;               // docs/errors.md
  std::optional<RankEnd> failure;  // the first one, unless a signal to us came before it
  int interrupted_by = 0;          // the signal that asked us to stop; 0: none
  std::string message = "";        // for a person; empty when all went well
  std::string advice = "";
};

// Runs until the last rank has ended. SIGINT, SIGTERM and SIGHUP become SIGTERM for the ranks,
// which then have the grace time; a second SIGINT kills them at once. REQUIRES: no other thread
// runs (the signals are blocked meanwhile and it forks). Throws ConfigError, before anything is
// started, for a program that is not there, a bad number of ranks, or more ranks than cores when
// pinned; MachineError when the system refuses, or hosts are not there at the first start.
LaunchOutcome run_launch(const Launch& launch);

}  // namespace lockstep
