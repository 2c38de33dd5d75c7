// Makes one timeline of a run over all ranks and hosts: one process per rank with rows for phases,
// exchanges and background work, and one process for the run as a whole with its attempts,
// evaluations, checkpoints, failures and curves. It is exact where spans were recorded (RUN/trace),
// shows steps or stretches of steps elsewhere (RUN/times), and rank 0's steps alone where there is
// neither (metrics.jsonl).
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
  std::size_t most_events = 100'000;  // for steps without spans; above, steps are joined
};

struct Timeline {
  std::string text;                // the file
  std::size_t events = 0;          // in it
  std::vector<std::string> notes;  // what was summarised or not recorded, and how to get it
};

// Throws ConfigError for a folder that holds no run or for steps that the run does not have,
// DataError for damaged files.
Timeline make_timeline(const fs::path& run, const TimelineOptions& options);

// Numbers of processes: 1 is the run, rank r is r + 2.
inline constexpr int kRunProcess = 1;
inline int process_of_rank(int rank) { return rank + 2; }
// Rows of a rank, in the order of the page; further rows (100 times the number) are at the end.
enum TraceThread : int { kPhasesThread = 1, kExchangeThread = 2, kBackgroundThread = 3 };

struct TimeRange {
  double begin = 0, end = 0;  // seconds since 1970
  bool has(double time) const { return time >= begin && time <= end; }
};

}  // namespace lockstep
