// Measures what a plan is made of: a few real steps, and all-reduces between the hosts.
#pragma once

#include <string>
#include <vector>

#include "launch/plan/plan_model.h"
#include "launch/probe/probed_hosts.h"

namespace lockstep {

struct ComputeRequest {
  Host host;             // the host that takes the steps
  RemoteOptions remote;  // how to reach it
  std::string folder;  // current folder, also "~/...": the configuration's paths are relative to it
  std::vector<std::string> words;  // CONFIG and key=value words, as for train
  int ranks = 1;                   // that take steps there
  int of_ranks = 1;                // among which steps are split
  int steps = 8, warming_steps = 3;
};

// Runs `lockstep train --bench-steps` there. When the steps differ too much from each other (other
// work on the machine), it runs once more and keeps the faster run. Throws the command's error,
// with its exit code.
RunMeasurement measure_compute(const ComputeRequest& request);

// Measures the link as all-reduces between the hosts see it, from two sizes: a small one, and as
// many of the step's buckets at once as there are `streams`. Before each the link is idle as it is
// in a step of `compute`, since TCP makes its window smaller after a pause that is long to it.
// Measures once more when no line can be fitted. REQUIRES two answering hosts.
struct MeasuredLink {
  Link link;
  ExchangeTiming small, large;
};
MeasuredLink measure_network(ProbedHosts& hosts, const ComputeModel& compute, int streams);

}  // namespace lockstep
