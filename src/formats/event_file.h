// TensorBoard event files: a writer and a reader, docs/formats.md "TensorBoard event file".
// Protocol-buffer messages (Event, Summary) are encoded by hand inside TFRecord frames. A file is
// only ever appended to; a resumed run opens a new file in the same folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace lockstep {

double seconds_since_epoch();  // the wall time that events carry

// Owns one open file. For one thread. Records are kept back until 64 kB, flush() or the end.
class EventWriter {
 public:
  // Creates `folder` if needed and in it events.out.tfevents.<seconds>.<host>.<pid>.v2, a name no
  // other file there has. Throws MachineError when that fails.
  explicit EventWriter(const fs::path& folder);
  ~EventWriter();  // writes what is left; a failure is logged, not thrown
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // One point of the curve `tag`; stored as float32. `wall_time` is in seconds since 1970.
  void scalar(std::string_view tag, int64_t step, double value,
              double wall_time = seconds_since_epoch());
  // Markdown for the page TEXT; also right for a whole configuration.
  void text(std::string_view tag, int64_t step, std::string_view markdown,
            double wall_time = seconds_since_epoch());

  void flush();  // throws MachineError when the disk refuses
  const fs::path& path() const { return path_; }

 private:
  struct Moment {
    int64_t step;
    double wall_time;
  };
  // Appends an Event with one Summary.Value; `value` holds its encoded fields after the tag.
  // Histograms and images will come in here too.
  void summary(std::string_view tag, Moment moment, std::string_view value);
  void record(std::string_view message);

  fs::path path_;
  int descriptor_ = -1;
  std::string pending_;
};

struct ScalarEvent {
  std::string tag;
  int64_t step = 0;
  double wall_time = 0;  // seconds since 1970
  float value = 0;
};

struct TextEvent {
  std::string tag;
  int64_t step = 0;
  double wall_time = 0;  // seconds since 1970
  std::string markdown;
};

struct EventFile {
  std::string version;  // "brain.Event:2"
  std::vector<ScalarEvent> scalars;
  std::vector<TextEvent> texts;
  int64_t records = 0;  // whole records, also those of kinds that are not kept
  // Where the last record begins if it ends beyond the file: its writer was killed, or is at work.
  std::optional<int64_t> truncated_at;
};

// Reads scalars (Summary.Value.simple_value) and texts, in the order of the file; skips the rest.
// Throws DataError naming the byte offset for a wrong checksum or a malformed message.
EventFile read_event_file(const fs::path& path);

}  // namespace lockstep
