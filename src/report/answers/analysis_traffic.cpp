#include "report/answers/analysis_traffic.h"

#include <algorithm>

namespace lockstep {

std::vector<WhatIf> what_if(double step_seconds, double exposed, double hidden, bool halved) {
  const double compute = step_seconds - exposed;
  const double half_most = exposed / 2, half_least = std::max(0.0, (exposed - hidden) / 2);
  const auto speed_up = [&](double left) { return step_seconds / (compute + left); };
  const double all = speed_up(0), low = speed_up(half_most), high = speed_up(half_least);
  const double twice = 2 * step_seconds / (2 * compute + exposed);
  const double four = 4 * step_seconds / (4 * compute + exposed);
  std::vector<WhatIf> out = {
      {"a network without cost", "exposed communication goes, computing stays", all, all},
      {"a network twice as fast",
       "the exchange takes half as long; how much of it stays hidden is "
       "between the bounds",
       low, high}};
  if (!halved) {
    out.push_back({"bf16 on the wire", "half the bytes: as a network twice as fast", low, high});
  }
  out.push_back({"accumulation of 2", "one exchange for twice the batch; changes what is learned",
                 twice, twice});
  out.push_back({"accumulation of 4",
                 "one exchange for four times the batch; changes what is learned", four, four});
  return out;
}

}  // namespace lockstep
