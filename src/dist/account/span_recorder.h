// Keeps what a rank does within some steps, span by span, in memory (formats/span_file.h). While
// nothing is recorded a span costs one look at a flag.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "formats/span_file.h"

namespace lockstep {

// What one rank recorded.
struct RecordedSpans {
  int64_t first_step = 0, last_step = 0;
  std::vector<std::string> names;
  std::vector<Span> spans;  // by begin
  int64_t dropped = 0;      // beyond what is kept
};

class SpanRecorder {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMostSpans = std::size_t{1} << 20;  // 40 MB

  // From the begin of the step `first` to the end of `last`, in place of what was planned before.
  // REQUIRES that nothing is recorded. By the rank's own thread, as all but add() and is_on().
  void plan(int64_t first, int64_t last);
  bool is_planned() const { return state_ == State::kPlanned; }
  // Recorded, to the end of its last step, when `step` is over; to be taken.
  bool is_over(int64_t step) const {
    return state_ == State::kOver || (state_ == State::kOn && step >= last_);
  }
  // Begun, and not taken yet.
  bool has_begun() const { return state_ == State::kOn || state_ == State::kOver; }
  void begin_step(int64_t step);
  // Ends it, also before its time; `step` is the last that was taken.
  RecordedSpans take(int64_t step);
  void cancel() { state_ = State::kIdle; }  // what is planned only

  // By any thread.
  bool is_on() const { return on_.load(std::memory_order_relaxed); }
  void add(Span span, std::string_view name, Clock::time_point begin, Clock::time_point end);

 private:
  enum class State { kIdle, kPlanned, kOn, kOver };
  void stop();

  State state_ = State::kIdle;
  int64_t first_ = 0, last_ = 0;
  std::atomic<bool> on_{false};
  std::mutex mutex_;       // of what follows
  double since_1970_ = 0;  // of the zero of Clock, in seconds
  RecordedSpans content_;
  std::map<std::string, int32_t, std::less<>> index_;  // of names
};

}  // namespace lockstep
