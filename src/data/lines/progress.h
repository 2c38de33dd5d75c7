// Shows the progress of a long stage: redrawn a few times a second on a terminal, rarely elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep {

class Progress {
 public:
  // A `total` of 0 means unknown. The unit "bytes" is shown as kB, MB or GB.
  Progress(std::string stage, std::string unit, int64_t total = 0);
  ~Progress();  // ends the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(int64_t done);    // cheap: reads the clock at every 256th call
  void update(int64_t done);  // for slower steps: reads the clock at every call
  void set_total(int64_t total) { total_ = total; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string amount(int64_t value) const;

  std::string stage_, unit_;
  int64_t total_, calls_ = 0, first_ = -1;  // first_: `done` at the first call
  Clock::time_point started_, next_;
  std::chrono::milliseconds interval_;
  bool shown_ = false;
};

}  // namespace lockstep
