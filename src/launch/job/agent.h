// The launcher's hand on one host: started through ssh, it starts that host's ranks, hands on what
// they say and how they end, and lives no longer than its channel. When the channel ends, or the
// launcher has said nothing for some seconds (a network that was cut says nothing either), it stops
// its ranks and ends. Whatever kills it kills its ranks (launch/processes/orphan_killer.h).
#pragma once

#include <chrono>
#include <optional>

#include "launch/job/agent_protocol.h"

namespace lockstep {

struct AgentOptions {
  std::chrono::milliseconds silence{5000};  // of the launcher, that means that it is gone
  // An agent of the same job that may still be here, cut off: it and its ranks end before ours
  // start.
  std::optional<ProcessId> replaces;
};

// Serves the launcher at the other end of standard input and output until there is none any more.
// Returns the exit code. REQUIRES: no other thread runs.
int run_agent(const AgentOptions& options);

// 0 for none of that number.
uint64_t start_time_of(int pid);

// GPUs that a rank on this host could see: by their device files, without loading CUDA.
int count_gpus();

}  // namespace lockstep
