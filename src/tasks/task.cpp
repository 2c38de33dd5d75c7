#include "tasks/task.h"

#include <span>

namespace lockstep {

bool breaks_off(World& world, const EvaluationRequest& request) {
  if (!request.stop_asked) return false;
  double stopped = request.is_stopped() ? 1 : 0;
  world.all_reduce_sum(std::span<double>(&stopped, 1));
  return stopped > 0;
}

}  // namespace lockstep
