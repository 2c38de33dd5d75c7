#include "train/folder/metric_history.h"

namespace lockstep {

std::set<int64_t> best_steps(const Validation& validation) {
  std::set<int64_t> out;
  for (const MetricHistory& history : validation) {
    for (const RankedStep& best : history.best) out.insert(best.step);
  }
  return out;
}

}  // namespace lockstep
