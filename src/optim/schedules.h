// Learning-rate schedules: pure functions of the step. The learning rate of a step is
// optimizer.lr times the schedule's value.
#pragma once

#include <cstdint>
#include <string>

#include "base/catalogue.h"
#include "config/fields.h"

namespace lockstep {

struct ScheduleConfig {
  std::string name = "noam";
  int64_t warmup_steps = 4000;
  double floor = 0;

  void describe(Fields& f);  // name is checked against the catalogue
};

// What a schedule may need to know besides its own settings.
struct ScheduleContext {
  int64_t width = 512;      // of the model (noam)
  int64_t total_steps = 1;  // of the run (linear, cosine)
};

// step counts from 1, the first step of the run.
using Schedule = double (*)(int64_t step, const ScheduleConfig&, const ScheduleContext&);

// constant     warm-up, then 1
// noam         width^-0.5 * min(step^-0.5, step * warmup^-1.5)   (Vaswani et al. 2017, section 5.3)
// inverse_sqrt the same shape with its peak at 1
// linear       warm-up, then a line down to `floor` at the last step
// cosine       warm-up, then half a cosine down to `floor`       (Loshchilov and Hutter 2017)
const Catalogue<Schedule>& schedules();

double schedule_value(int64_t step, const ScheduleConfig& config, const ScheduleContext& context);

}  // namespace lockstep
