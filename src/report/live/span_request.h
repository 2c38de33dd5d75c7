// Asks a running run for the spans of its next steps through RUN/trace/request.json. Rank 0 sees
// the request, has all ranks record, and removes it when the file of spans is written
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
  double limit = 0;  // seconds to wait; 0: by the steps' time, at least 60
  std::function<void(const std::string&)> on_progress = [](const std::string&) {};
};

// Waits until the spans are there, and returns their file. Throws ConfigError where the run is not
// training now or has another request already, MachineError when it ends meanwhile or the limit
// passes; the request is then withdrawn.
fs::path request_spans(const fs::path& run, const SpanRequest& request);

}  // namespace lockstep
