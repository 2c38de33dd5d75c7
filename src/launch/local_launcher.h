// Starts the ranks of one job on this host, watches them and stops them: the first failure ends
// all, and no process stays behind however the launcher itself ends. One thread, one loop over
// signals and output. Other hosts come as agents that do the same for their share of the ranks.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/first_failure.h"
#include "launch/rank_output.h"

namespace lockstep {

struct LocalLaunch {
  int ranks = 1;                           // 1 to kMostLocalRanks
  std::vector<std::string> command;        // program and arguments, the same for all ranks
  std::chrono::milliseconds grace{10000};  // from SIGTERM to SIGKILL; time for a last checkpoint
  bool pin = false;                        // an equal share of the cores for each rank
  RankOutput::Options output;
};
inline constexpr int kMostLocalRanks = 256;

struct LaunchOutcome {
  int exit_code = 0;               // docs/errors.md
  std::optional<RankEnd> failure;  // the first one, unless a signal to us came before it
  int interrupted_by = 0;          // the signal that asked us to stop; 0: none
  std::string message;             // for a person; empty when all went well
  std::string advice;
};

// Runs until the last rank has ended. SIGINT, SIGTERM and SIGHUP become SIGTERM for the ranks,
// which then have the grace time; a second SIGINT kills them at once. REQUIRES: no other thread
// runs (the signals are blocked meanwhile and it forks). Throws ConfigError, before anything is
// started, for a program that is not there, a bad number of ranks, or more ranks than cores when
// pinned; MachineError when the system refuses.
LaunchOutcome launch_local(const LocalLaunch& launch);

// The environment of one rank: ours without any launcher's variables (clear_list), plus lockstep's.
struct RankPlace {
  int rank = 0, size = 1;
  int master_port = 0;
  int store_descriptor = -1;  // rank 0 only
  int threads = 1;            // OMP_NUM_THREADS unless we have it already
  std::string run_id = "";
};
std::vector<std::string> environment_of_rank(const RankPlace& place);

// The cores that this process may run on, ascending.
std::vector<int> usable_cores();

}  // namespace lockstep
