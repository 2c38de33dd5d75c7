// Implements the 1cycle policy (Smith and Topin 2017, "Super-Convergence"), with the same numbers
// as torch.optim.lr_scheduler.OneCycleLR.
#pragma once

#include "optim/schedules/schedules.h"

namespace lockstep {

// The learning rate, as a share of the largest, and the momentum at `step`, which runs
// from 1 to total_steps.
double one_cycle_value(int64_t step, const ScheduleConfig& config, const ScheduleContext& context);
double one_cycle_momentum(int64_t step, const ScheduleConfig& config,
                          const ScheduleContext& context);

}  // namespace lockstep
