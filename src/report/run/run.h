// All that a run folder holds, read once for a report or a timeline.
#pragma once

#include <optional>

#include "report/run/run_facts.h"
#include "report/run/run_history.h"
#include "report/run/run_times.h"

namespace lockstep {

struct Run {
  RunFacts facts;
  RunHistory history;
  std::optional<RunTimes> times;  // of every rank; nothing: the run recorded none
};

}  // namespace lockstep
