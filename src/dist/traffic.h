// What a run sends over the network, by arithmetic: for plans before the run, and to compare with
// what the network interface counts.
#pragma once

#include <cstdint>
#include <vector>

#include "dist/comm_hooks.h"

namespace lockstep {

struct CommPlan {
  CommHookConfig hook;
  std::vector<GradientShape> parameters;  // of the flat gradients
  int machines = 1;  // that take part, each with one rank that talks; without shared memory: ranks
  // Steps between two meetings of the machines: 1, or comm.local_steps with a local strategy.
  double steps_between_sums = 1;
};

// Bytes of one sum's messages: gradients as the hooks leave them, once.
double message_bytes(const CommPlan& plan);
// Bytes that one machine sends, and as many that it receives, in a step on average: a sum over n
// machines moves 2 (n - 1) / n times its message each way. Headers of TCP and Ethernet (3 to 6 per
// cent) and the few numbers that the ranks agree on beside come on top.
double bytes_per_step(const CommPlan& plan);
// How many one-way delays a sum takes when bandwidth is no limit.
double delays_per_sum(const CommPlan& plan);

}  // namespace lockstep
