// The sources of a timeline (report/timeline/run_timeline.h), each of which adds its events.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/span_file.h"
#include "report/run/run.h"
#include "report/timeline/run_timeline.h"

namespace lockstep {

// State that the sources share.
struct TimelineContext {
  const Run& run;
  const TimelineOptions& options;
  TraceEvents& events;
  std::vector<std::string>& notes;
  std::vector<SpanFile> spans;                       // whose steps were asked for
  std::set<int> ranks = {};                          // that have events and so need names
  std::map<int, std::vector<TimeRange>> exact = {};  // by rank: the times that spans cover

  std::set<std::pair<int, int>> further_rows = {};  // process and thread, already named

  bool wants(int64_t step) const {
    return !options.steps || (step >= options.steps->first && step <= options.steps->second);
  }
  // Returns whether spans show the step that rank 0 began at `begin`.
  bool has_spans(int64_t step, double begin) const;
};

// Adds exact spans, in rows of their own where they overlap, and arrows between the same operation
// on different ranks (timeline_spans.cpp).
void add_spans(TimelineContext& context);

// Adds steps without spans, from RUN/times, else from metrics.jsonl (timeline_steps.cpp).
void add_steps(TimelineContext& context);

// Adds the run as a whole (timeline_events.cpp).
void add_run_events(TimelineContext& context);

}  // namespace lockstep
