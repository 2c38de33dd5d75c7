// The 1cycle policy (Smith and Topin 2017, "Super-Convergence"), number for number as
// torch.optim.lr_scheduler.OneCycleLR.
#pragma once

#include "optim/schedules.h"

namespace lockstep {

// Share of the largest learning rate at `step`, from 1 to total_steps.
double one_cycle_value(int64_t step, const ScheduleConfig& config, const ScheduleContext& context);
double one_cycle_momentum(int64_t step, const ScheduleConfig& config,
                          const ScheduleContext& context);

}  // namespace lockstep
