// Tells where a run stands, and how a checkpoint's state.json says it
// (docs/run-folder.md#checkpoints).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "data/steps/step_size.h"
#include "train/folder/metric_history.h"

namespace lockstep {

// The position after `step` steps; the next step is number `step_in_epoch` of `epoch`.
struct RunPosition {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  int64_t targets_seen = 0;
  int64_t evaluated_step = -1;  // step of the newest evaluation
  Validation validation;
  BatchSize step_size;             // of full steps, at last
  std::vector<EpochStretch> done;  // the steps of this epoch that were of other sizes, its first
  // By how many steps the schedule is ahead of `step`, when it spans the run's epochs and their
  // steps changed in number.
  int64_t schedule_shift = 0;
};

nlohmann::ordered_json to_json(const RunPosition& position);
// Throws nlohmann::json::exception for text that to_json() did not write.
RunPosition position_from_json(const nlohmann::ordered_json& json);

}  // namespace lockstep
