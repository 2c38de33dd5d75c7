// Learning rate schedules are pure functions of the step. The learning rate of a step is
// optimizer.lr times the schedule's value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/catalogue.h"
#include "config/fields.h"

namespace lockstep {

// Each schedule reads some of these; `lockstep explain schedule schedule.name=poly` shows which.
struct ScheduleConfig {
  std::string name = "noam";
  int64_t warmup_steps = 4000;
  double floor = 0;
  double min_lr = 0;
  double max_lr = 0;
  int64_t decay_steps = 0;
  int64_t begin_decay_at = 0;
  double power = 1;
  double decay_rate = 0.5;
  bool staircase = false;
  // hf_linear, with the names and defaults of transformers.
  double warmup_ratio = 0;
  int64_t num_warmup_steps = 0;
  std::vector<double> boundaries, values;
  // one_cycle, with the names and defaults of torch.optim.lr_scheduler.OneCycleLR.
  double pct_start = 0.3;
  std::string anneal_strategy = "cos";
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;

  void describe(Fields& f);   // checks `name` against the catalogue
  std::string check() const;  // empty, or which keys contradict each other
};

// What a schedule may need besides its own configuration.
struct ScheduleContext {
  int64_t width = 512;      // of the model (noam)
  int64_t total_steps = 1;  // of the run
  double lr = 1;            // optimizer.lr, for limits given as learning rates
};

// `step` counts from 1, the first step of the run.
struct Schedule {
  double (*value)(int64_t step, const ScheduleConfig&, const ScheduleContext&);
  std::vector<std::string> keys;  // keys of ScheduleConfig that it reads, besides the name
};

// With s the step, g = s - 1 (OpenSeq2Seq's global_step), b = max(warmup_steps, begin_decay_at), or
// begin_decay_at for exp, and D = decay_steps or, when that is 0, the steps of the run after b.
// Warm-up is s / warmup_steps (OpenSeq2Seq: g / warmup_steps, whose first step does nothing).
// `least` is min_lr / lr. After the warm-up no value is below `floor` times the peak, in schedules
// that have that key.
//
// fixed         1
// constant      warm-up, then 1
// noam          width^-0.5 * min(s^-0.5, s * warmup^-1.5), at most max_lr (Vaswani et al. 2017)
// inverse_sqrt  the same shape with its peak at 1
// linear        warm-up, then a line down to `floor`, of which (s - b) / D is done
// cosine        the same with half a cosine (Loshchilov and Hutter 2017)
// piecewise     1, then values[i] from the first step with g > boundaries[i] on
// exp           decay_rate^((g - b) / D), the quotient rounded down with `staircase`, >= least
// poly          warm-up, then least + (1 - least) * (1 - min(g - b, D) / D)^power
// inv_poly      warm-up, then (1 + r * (g - b))^-power, r such that it is `least` after D steps
// hf_linear     transformers' Trainer (get_linear_schedule_with_warmup): with W = num_warmup_steps,
//               or with 0 ceil(warmup_ratio * steps of the run), g / W and then
//               (steps - g) / (steps - W)
// one_cycle     Smith and Topin 2017, as torch's OneCycleLR with max_lr = optimizer.lr and
//               total_steps = training.steps; it changes the momentum (Adam: beta1) as well
const Catalogue<Schedule>& schedules();

double schedule_value(int64_t step, const ScheduleConfig& config, const ScheduleContext& context);

// Returns the momentum of the step when the schedule changes it, to replace the optimizer's own.
std::optional<double> schedule_momentum(int64_t step, const ScheduleConfig& config,
                                        const ScheduleContext& context);

}  // namespace lockstep
