// Writes TensorBoard event files (docs/formats.md#tensorboard-event-file): protocol buffer messages
// (Event, Summary) inside TFRecord frames. A file is only ever appended to. A resumed run opens a
// new file in the same folder.
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

double seconds_since_epoch();  // the default wall time of events

// Owns one open file. Not thread-safe. Records are buffered until 64 kB, flush() or the destructor.
class EventWriter {
 public:
  // Creates `folder` if needed, and in it a new file events.out.tfevents.<seconds>.<host>.<pid>.v2
  // whose name no other file has. Throws MachineError when that fails.
  explicit EventWriter(const fs::path& folder);
  ~EventWriter();  // writes the buffered records; logs a failure, never throws
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // Adds one point of the curve `tag`, stored as float32. `wall_time` is in seconds since 1970.
  void scalar(std::string_view tag, int64_t step, double value,
              double wall_time = seconds_since_epoch());
  // Adds Markdown for the page TEXT. A whole configuration may be passed too.
  void text(std::string_view tag, int64_t step, std::string_view markdown,
            double wall_time = seconds_since_epoch());

  // Adds a PNG picture for the page IMAGES.
  void image(std::string_view tag, int64_t step, const RgbImage& picture,
             double wall_time = seconds_since_epoch());
  // Adds a histogram for the pages HISTOGRAMS and DISTRIBUTIONS, unless it has no values.
  void histogram(std::string_view tag, int64_t step, const Histogram& values,
                 double wall_time = seconds_since_epoch());
  // Adds names, values and metrics for the page HPARAMS when a run begins.
  void session_start(const HyperParameters& run, double wall_time = seconds_since_epoch());
  // Adds how the run ended. TensorBoard keeps the first start and the first end of a folder.
  void session_end(SessionStatus status, double wall_time = seconds_since_epoch());

  void flush();  // throws MachineError when the disk refuses
  const fs::path& path() const { return path_; }

 private:
  struct Moment {
    int64_t step;
    double wall_time;
  };
  // Appends an Event with one Summary.Value. `value` holds its encoded fields except the tag.
  void summary(std::string_view tag, Moment moment, std::string_view value);
  // Appends a summary that has no content but plugin data.
  void plugin(std::string_view tag, double wall_time, std::string_view data);
  void record(std::string_view message);

  fs::path path_;
  int descriptor_ = -1;
  std::string pending_;
};

}  // namespace lockstep
