// Chrome's trace-event format, which ui.perfetto.dev and chrome://tracing open: "Trace Event
// Format" (Google, 2016), the JSON object form. Times come in as seconds since 1970, go out as
// microseconds since the earliest event.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace lockstep {

// Where an event stands: a process (here a rank) and a thread of it (a row).
struct TracePlace {
  int process = 0, thread = 0;
};

class TraceEvents {
 public:
  // Names of rows, and their order from the top. `order` of processes and of a process's threads.
  void name_process(int process, const std::string& name, int order);
  void name_thread(TracePlace place, const std::string& name, int order);

  // From `begin` to `end`. Slices of one thread must lie apart or within each other; those that
  // overlap otherwise are moved apart by TraceRow and TraceLanes below. `args`: an object or null.
  void slice(TracePlace place, const std::string& name, double begin, double end,
             const nlohmann::ordered_json& args);
  // A point in time, drawn across all processes or on its thread alone.
  void instant(TracePlace place, const std::string& name, double time, bool across_all,
               const nlohmann::ordered_json& args);
  // A curve of a process.
  void counter(int process, const std::string& name, double time, double value);
  // An arrow from slice to slice: each point is a place and a time within the slice there, by time.
  void flow(const std::string& name, const std::vector<std::pair<TracePlace, double>>& points);

  std::size_t count() const { return events_.size(); }

  // The file's whole text: events by time, outer slices first. `about` goes into "otherData".
  std::string text(const nlohmann::ordered_json& about) const;

 private:
  struct Event {
    int64_t time = 0, length = 0;  // nanoseconds
    std::string head, tail;        // its JSON around "ts"
  };
  void add(int64_t time, int64_t length, std::string head, std::string tail);

  std::vector<Event> events_;
  std::vector<std::string> metadata_;
  int64_t flows_ = 0;
};

// Nanoseconds since 1970, as events are kept: slices that touch in seconds touch in the file.
int64_t trace_nanoseconds(double seconds);

// Begins of slices on one thread that follow each other: none before the end of the one before.
class TraceRow {
 public:
  // Moves [begin, end) so that it does not overlap what came before; length may shrink to 0.
  void follow(double& begin, double& end);
  double end() const { return end_; }  // of what came before

 private:
  double end_ = 0;
};

// Gives spans that overlap rows of their own: 0, 1, ... Spans come by begin; one that lies within
// another may share its row.
class TraceLanes {
 public:
  std::size_t place(double begin, double end);
  std::size_t used() const { return open_.size(); }

 private:
  std::vector<std::vector<int64_t>> open_;  // of each row, ends of the slices that are open
};

// gzip (RFC 1952) where the name ends in .gz. MachineError when the disk refuses.
void write_trace(const fs::path& path, const std::string& text);

}  // namespace lockstep
