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
#include "formats/histogram.h"
#include "formats/hyper_parameters.h"
#include "formats/png_file.h"

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

  // For the page IMAGES, as PNG.
  void image(std::string_view tag, int64_t step, const RgbImage& picture,
             double wall_time = seconds_since_epoch());
  // For the pages HISTOGRAMS and DISTRIBUTIONS. One without values is left out.
  void histogram(std::string_view tag, int64_t step, const Histogram& values,
                 double wall_time = seconds_since_epoch());
  // For the page HPARAMS: names, values and metrics when a run begins ...
  void session_start(const HyperParameters& run, double wall_time = seconds_since_epoch());
  // ... and how it ended. TensorBoard keeps the first of each that a folder has.
  void session_end(SessionStatus status, double wall_time = seconds_since_epoch());

  void flush();  // throws MachineError when the disk refuses
  const fs::path& path() const { return path_; }

 private:
  struct Moment {
    int64_t step;
    double wall_time;
  };
  // Appends an Event with one Summary.Value; `value` holds its encoded fields after the tag.
  void summary(std::string_view tag, Moment moment, std::string_view value);
  // One whose content is plugin data alone.
  void plugin(std::string_view tag, double wall_time, std::string_view data);
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

struct ImageEvent {
  std::string tag;
  int64_t step = 0;
  double wall_time = 0;
  int64_t width = 0, height = 0;
  std::string png;  // the encoded file
};

struct HistogramEvent {
  std::string tag;
  int64_t step = 0;
  double wall_time = 0;
  Histogram values;
};

// What the plugin `hparams` left under one of its tags (hyper_parameters.h).
struct HyperEvent {
  std::string tag;
  std::string data;
};

struct EventFile {
  std::string version;  // "brain.Event:2"
  std::vector<ScalarEvent> scalars;
  std::vector<TextEvent> texts;
  std::vector<ImageEvent> images;
  std::vector<HistogramEvent> histograms;
  std::vector<HyperEvent> hyper;
  int64_t records = 0;  // whole records, also those of kinds that are not kept
  // Where the last record begins if it ends beyond the file: its writer was killed, or is at work.
  std::optional<int64_t> truncated_at;
};

// Reads what EventWriter writes, in the order of the file; skips other kinds of values.
// Throws DataError naming the byte offset for a wrong checksum or a malformed message.
EventFile read_event_file(const fs::path& path);

}  // namespace lockstep
