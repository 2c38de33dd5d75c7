#include "report/answers/host_clock.h"

namespace lockstep {

namespace {

bool computed_on_gpus(const Run& run) {
  const std::string& device = run.history.device;
  return (device.empty() ? run.facts.value("run.device") : device).starts_with("cuda");
}

}  // namespace

bool phases_by_host_clock(const Run& run) {
  return computed_on_gpus(run) && !run.history.device_clock;
}

double most_waiting_share(const Run& run) {
  double waiting = 0, steps = 0;
  for (const RankPhases& rank : run.times->steady) {
    waiting += rank.exchange + rank.peers + rank.optimizer;
    steps += rank.step();
  }
  return steps > 0 ? waiting / steps : 0;
}

void add_host_clock(const Run& run, Answer& out) {
  const bool by_host = phases_by_host_clock(run);
  out.facts["phases_by_host_clock_ahead_of_gpus"] = by_host;
  if (computed_on_gpus(run) && !by_host) {
    out.evidence.emplace_back("Phases are by the GPUs' own clock.");
  }
  if (!by_host) return;
  out.evidence.emplace_back(
      "Phases are by the host's clock, and the host is ahead of its GPU: forward is handing "
      "kernels "
      "over, backward has the GPU's time of both passes, and communication that computing does not "
      "hide is in the optimizer, where the host waits for it. Whole steps, and waiting for data, "
      "are "
      "right.");
  out.not_measured.push_back(
      {"forward, backward and exposed communication on the GPUs' own clock",
       "the run recorded when the host queued work, not when the GPUs did it",
       "nsys profile -t cuda,nvtx,osrt lockstep train ... for some steps; the GPUs' use over the "
       "whole run is in question 4"});
}

}  // namespace lockstep
