#include "launch/job/launch_outcome.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace lockstep {

LaunchOutcome outcome_of(const JobVerdict& verdict, const RunEnd& run) {
  LaunchOutcome out{.exit_code = verdict.exit_code, .failure = verdict.failure};
  out.interrupted_by = verdict.interrupted_by;
  if (out.interrupted_by != 0) {
    out.message = fmt::format("stopped by {}", signal_name(out.interrupted_by));
    return out;
  }
  if (verdict.run_out) {
    out.message = fmt::format("stopped before the budget was spent: {}", run.spent);
    out.advice = "with a larger --budget it goes on from the newest checkpoint";
    return out;
  }
  if (verdict.loss) {
    out.message = verdict.loss->describe();
    return out;
  }
  if (!out.failure) return out;
  const RankEnd& end = *out.failure;
  const std::string where = run.failed_on.empty() ? "" : " on " + run.failed_on;
  out.message = fmt::format("rank {} of {}{} {} after {:.1f} s", end.rank, run.ranks, where,
                            describe_end(end), seconds_of(end.time - run.started));
  if (!run.last_lines.empty()) out.message += "; its last lines:";
  for (const std::string& line : run.last_lines) out.message += "\n    | " + line;
  out.advice = advice_for(end);
  return out;
}

}  // namespace lockstep
