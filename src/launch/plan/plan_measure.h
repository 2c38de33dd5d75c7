// Measures what a plan is made of: a few real steps, and sums between the hosts.
#pragma once

#include <string>
#include <vector>

#include "launch/plan/plan_model.h"
#include "launch/probe/probed_hosts.h"

namespace lockstep {

struct ComputeRequest {
  Host host;                       // which takes the steps
  RemoteOptions remote;            // how to reach it
  std::string folder;              // to run in: paths of the configuration are relative to it
  std::vector<std::string> words;  // CONFIG and key=value words, as for train
  int ranks = 1;                   // that take steps there
  int of_ranks = 1;                // as of a run of so many
  int steps = 8, warming_steps = 3;
};

// `lockstep train --bench-steps` there. When the steps differ too much among themselves (other work
// on the machine) they are taken once more, and the quicker ones count. Throws what the command
// failed with, under its exit code.
RunMeasurement measure_compute(const ComputeRequest& request);

// The link that sums between the hosts see, from two sizes: a small sum, and a few buckets at once;
// measured once more when they cannot be fitted. REQUIRES two answering hosts.
struct MeasuredLink {
  Link link;
  ExchangeTiming small, large;
};
MeasuredLink measure_network(ProbedHosts& hosts, double bucket_bytes, double gradient_bytes);

}  // namespace lockstep
