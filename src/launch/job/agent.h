// The launcher's agent on one host. ssh starts it; it starts that host's ranks, forwards their
// output and how they end, and lives no longer than its channel. When the channel ends, or the
// launcher has been silent for some seconds (a cut network is silent, too), it stops its ranks and
// ends. Whatever kills it kills its ranks (launch/processes/orphan_killer.h).
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "launch/job/agent_protocol.h"
#include "launch/job/notice_watch.h"

namespace lockstep {

struct AgentOptions {
  std::chrono::milliseconds silence{5000};  // of the launcher, after which it counts as gone
  // An agent of the same job that may still run here, cut off: it and its ranks are ended before
  // ours start.
  std::optional<ProcessId> replaces;
  // Throws for what this agent may not start; empty: it starts what it is told.
  std::function<void(const StartOrder&)> admit;
  SpotOptions spot;
  std::function<void()> daily;  // called at the start and then every day; may be empty
};

// Serves the launcher over standard input and output until the launcher is gone. Returns the exit
// code. REQUIRES that no other thread runs.
int run_agent(const AgentOptions& options);

// Returns the start time of the process in ticks after boot, 0 when there is none.
uint64_t start_time_of(int pid);

// Counts the GPUs that a rank on this host could see, by their device files, without loading CUDA.
int count_gpus();

}  // namespace lockstep
