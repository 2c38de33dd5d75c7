// How a launch ended: what its exit code is, and what a person is told of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/job/supervisor.h"

namespace lockstep {

// The exit code of a launch whose run ended well while the command of --then did not
// (docs/errors.md).
inline constexpr int kExitThen = 7;

struct LaunchOutcome {
  int exit_code = 0;               // docs/errors.md
  std::optional<RankEnd> failure;  // the first one, unless a signal stopped us before
  int interrupted_by = 0;          // the signal that stopped us; 0: none
  std::string message = "";        // for a person; empty on success
  std::string advice = "";
};

// What the supervisor's verdict is told with.
struct RunEnd {
  int ranks = 0;                        // of the last attempt
  std::string failed_on;                // the host of the rank that failed; empty: this machine
  Clock::time_point started;            // the launch
  std::string spent;                    // "16.00 of 20.00"
  std::vector<std::string> last_lines;  // of the rank that failed
};

LaunchOutcome outcome_of(const JobVerdict& verdict, const RunEnd& run);

}  // namespace lockstep
