// The sources of a timeline (report/timeline/run_timeline.h), each adding its events.
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

// What the parts share.
struct TimelineContext {
  const Run& run;
  const TimelineOptions& options;
  TraceEvents& events;
  std::vector<std::string>& notes;
  std::vector<SpanFile> spans;                       // those whose steps are asked for
  std::set<int> ranks = {};                          // that have events: they need names
  std::map<int, std::vector<TimeRange>> exact = {};  // by rank: what spans show of its phases

  std::set<std::pair<int, int>> further_rows = {};  // process and thread, named so far

  bool wants(int64_t step) const {
    return !options.steps || (step >= options.steps->first && step <= options.steps->second);
  }
  // Whether spans show a step that rank 0 began then.
  bool has_spans(int64_t step, double begin) const;
};

// Exact spans, in rows of their own where they overlap; arrows between the same operation on
// different ranks (timeline_spans.cpp).
void add_spans(TimelineContext& context);

// Steps without spans: out of RUN/times, else out of metrics.jsonl (timeline_steps.cpp).
void add_steps(TimelineContext& context);

// The run as a whole (timeline_events.cpp).
void add_run_events(TimelineContext& context);

}  // namespace lockstep
