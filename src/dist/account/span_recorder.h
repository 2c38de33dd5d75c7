// Records in memory, span by span, what a rank does during some steps (formats/span_file.h). While
// nothing is recorded, a span costs one check of a flag.
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

// The spans that one rank recorded.
struct RecordedSpans {
  int64_t first_step = 0, last_step = 0;
  std::vector<std::string> names;
  std::vector<Span> spans;  // sorted by begin
  int64_t dropped = 0;      // spans beyond the limit, which were not kept
};

class SpanRecorder {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMostSpans = std::size_t{1} << 20;  // 40 MB

  // Plans to record from the beginning of step `first` to the end of step `last`; replaces an
  // earlier plan. REQUIRES that nothing is recorded. Only the rank's own thread calls it and the
  // others, except add() and is_on().
  void plan(int64_t first, int64_t last);
  bool is_planned() const { return state_ == State::kPlanned; }
  // Whether the recording is complete once `step` has ended, and is to be taken.
  bool is_over(int64_t step) const {
    return state_ == State::kOver || (state_ == State::kOn && step >= last_);
  }
  // Whether recording has begun and was not taken yet.
  bool has_begun() const { return state_ == State::kOn || state_ == State::kOver; }
  void begin_step(int64_t step);
  // Ends the recording, also early, and returns it; `step` is the last step recorded.
  RecordedSpans take(int64_t step);
  void cancel() { state_ = State::kIdle; }  // drops a plan; REQUIRES that recording has not begun

  // These two may be called from any thread.
  bool is_on() const { return on_.load(std::memory_order_relaxed); }
  void add(Span span, std::string_view name, Clock::time_point begin, Clock::time_point end);

 private:
  enum class State { kIdle, kPlanned, kOn, kOver };
  void stop();

  State state_ = State::kIdle;
  int64_t first_ = 0, last_ = 0;
  std::atomic<bool> on_{false};
  std::mutex mutex_;       // guards what follows
  double since_1970_ = 0;  // the zero of Clock, in seconds since 1970
  RecordedSpans content_;
  std::map<std::string, int32_t, std::less<>> index_;  // index into content_.names
};

}  // namespace lockstep
