// A run as one timeline over all ranks and hosts: a process a rank with rows for phases, exchanges
// and background, and one for the run as a whole with its attempts, evaluations, checkpoints,
// failures and curves. Exact where spans were recorded (RUN/trace), steps or stretches of steps
// elsewhere (RUN/times), rank 0's steps alone where there is neither (metrics.jsonl).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "report/run/rank_filter.h"
#include "report/timeline/trace_events.h"

namespace lockstep {

struct TimelineOptions {
  std::optional<std::pair<int64_t, int64_t>> steps;  // first and last; nothing: the whole run
  RankFilter ranks;
  std::size_t most_events = 100'000;  // of steps without spans; above, stretches of steps are one
};

struct Timeline {
  std::string text;                // the file
  std::size_t events = 0;          // in it
  std::vector<std::string> notes;  // what was summarised, what was not recorded, and how to have it
};

// Throws ConfigError for a folder that holds no run or steps that it does not have, DataError for
// damaged files.
Timeline make_timeline(const fs::path& run, const TimelineOptions& options);

// The parts, each a source of events; places: process 1 is the run, rank r is process r + 2.
inline constexpr int kRunProcess = 1;
inline int process_of_rank(int rank) { return rank + 2; }
// Rows of a rank; the order on the page, with further rows (100 times as much) at the end.
enum TraceThread : int { kPhasesThread = 1, kExchangeThread = 2, kBackgroundThread = 3 };

struct TimeRange {
  double begin = 0, end = 0;  // seconds since 1970
  bool has(double time) const { return time >= begin && time <= end; }
};

}  // namespace lockstep
