// Writes Chrome's trace-event format, which ui.perfetto.dev and chrome://tracing open: "Trace Event
// Format" (Google, 2016), in its JSON object form. Input times are in seconds since 1970, output
// times in microseconds since the earliest event.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace lockstep {

// The place of an event: a process (here a rank) and a thread of it (a row).
struct TracePlace {
  int process = 0, thread = 0;
};

class TraceEvents {
 public:
  // Name rows. `order`, from the top, is among processes or among a process's threads.
  void name_process(int process, const std::string& name, int order);
  void name_thread(TracePlace place, const std::string& name, int order);

  // Adds a slice from `begin` to `end`. Slices of one thread must be disjoint or nested; TraceRow
  // and TraceLanes below separate those that overlap otherwise. `args` is an object or null.
  void slice(TracePlace place, const std::string& name, double begin, double end,
             const nlohmann::ordered_json& args);
  // Adds a point in time, drawn across all processes or only on its thread.
  void instant(TracePlace place, const std::string& name, double time, bool across_all,
               const nlohmann::ordered_json& args);
  // Adds a point of a process's curve.
  void counter(int process, const std::string& name, double time, double value);
  // Adds an arrow from slice to slice. Each point is a place and a time within the slice there;
  // points are ordered by time.
  void flow(const std::string& name, const std::vector<std::pair<TracePlace, double>>& points);

  std::size_t count() const { return events_.size(); }

  // Returns the file's text: events by time, outer slices first. `about` goes into "otherData".
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

// Nanoseconds since 1970, in which events are stored: slices that touch in seconds touch in the
// file.
int64_t trace_nanoseconds(double seconds);

// Keeps the slices of one thread in sequence: none begins before the previous one ends.
class TraceRow {
 public:
  // Moves [begin, end) so that it does not overlap earlier slices; its length may shrink to 0.
  void follow(double& begin, double& end);
  double end() const { return end_; }  // of the previous slice

 private:
  double end_ = 0;
};

// Gives overlapping spans rows of their own: 0, 1, ... Spans must be ordered by begin; one that is
// nested within another may share its row.
class TraceLanes {
 public:
  std::size_t place(double begin, double end);
  std::size_t used() const { return open_.size(); }

 private:
  std::vector<std::vector<int64_t>> open_;  // per row, the ends of open slices
};

// Writes a file, with gzip (RFC 1952) where the name ends in .gz. Throws MachineError when the disk
// refuses.
void write_trace(const fs::path& path, const std::string& text);

}  // namespace lockstep
