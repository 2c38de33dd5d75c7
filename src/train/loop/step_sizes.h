// What a run tells of the size of its steps, and how it goes on in an epoch that it began with
// steps of another size.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "optim/schedules/schedules.h"
#include "tasks/task.h"
#include "train/folder/run_position.h"

namespace lockstep {

struct StepSizeFacts {
  BatchSize step;
  int64_t per_rank = 0;  // of a micro-batch of a rank, where that is configured; else 0
  int64_t ranks = 1, micro_batches = 1;
  int64_t updates_an_epoch = 0;
  double lr = 0;                    // optimizer.lr
  std::optional<BatchSize> before;  // of an earlier process of the run, where it was another one
};

// Returns "512 images a step (256 a rank x 2 ranks), 2,503 steps an epoch", and where the size
// follows the ranks, what optimizer.lr would be if it were scaled with it: linearly (Goyal et al.
// 2017, section 2.1), and by the square root (Krizhevsky 2014, section 5).
std::string step_size_text(const StepSizeFacts& facts);
nlohmann::ordered_json to_json(const StepSizeFacts& facts);

// Has `task` go on in the epoch of `position`, and notes in it what the run's next checkpoints need
// to know. Returns the former size of a step where it is another one now. Where the schedule spans
// the run's `epochs`, it goes on where it was. REQUIRES an open task.
std::optional<BatchSize> continue_epoch(Task& task, const ScheduleConfig& schedule, int64_t epochs,
                                        RunPosition& position);
// Says what the change means for the run.
std::string changed_size_text(const StepSizeFacts& facts, const RunPosition& position);

}  // namespace lockstep
