// TensorBoard event files, docs/formats.md#tensorboard-event-file: protocol-buffer messages
// (Event, Summary) inside TFRecord frames. A file is only ever appended to; a resumed run opens a
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

}  // namespace lockstep
