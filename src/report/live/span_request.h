// Asks a run that is under way for the spans of its next steps: RUN/trace/request.json, which rank
// 0 sees, has all ranks record, and removes when the file of spans is there
// (docs/report.md#lockstep-trace).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/file.h"

namespace lockstep {

struct SpanRequest {
  int64_t steps = 5;
  double limit = 0;  // seconds to wait; 0: by the steps' own time, 60 at least
  std::function<void(const std::string&)> on_progress = [](const std::string&) {};
};

// Waits until the spans are there. Throws ConfigError where the run does not train now or is asked
// already, MachineError when it ends meanwhile or the time is over; the request is taken back then.
// Returns the file.
fs::path request_spans(const fs::path& run, const SpanRequest& request);

}  // namespace lockstep
