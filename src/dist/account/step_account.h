// Accounts for the time of this rank's steps: its phases, as RankProgress marks them, and how much
// of the exchanges with other ranks is hidden behind them. docs/run-folder.md#times-of-every-rank
// says what each figure means and what it does not.
//
// The rank's own thread marks phases; exchanges end on any thread. A step costs a dozen marks, and
// one for each exchange, of some ten nanoseconds each (benchmarks/progress_marks.cpp).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "dist/account/moved_bytes.h"
#include "dist/account/phase.h"
#include "dist/account/span_recorder.h"
#include "formats/step_times.h"

namespace lockstep {

struct AccountedStep {
  int64_t step = 0;  // 0: none yet
  double begin = 0;  // seconds since 1970
  RankTimes times;   // all but `peers`, which needs the other ranks' figures
  double busy = 0;   // from the end of each wait to the beginning of the next; 0: unknown
};

class StepAccount {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // The rank is in `phase` from `now` on. Call the functions up to so_far() from
  // the rank's own thread.
  void enter(Phase phase, Time now);
  // Ends the step before. When the number is the same again, that step goes on: its batch was lost.
  void begin_step(int64_t step, Time now);
  // Call after the last step.
  void end_step(Time now);
  // Returns the step that ended last.
  const AccountedStep& ended() const { return ended_; }
  // Returns the times of the current step: its finished phases, what they hid and what was moved.
  RankTimes so_far() const;

  // This rank was in an exchange of `bytes` of payload. Any thread may call this
  // and the functions below.
  void exchange(std::string_view name, Time begin, Time end, int64_t bytes);
  // A forward or backward pass was blocked by an exchange, which it therefore did not hide.
  void stood_still(Time begin, Time end);
  MovedBytes& moved() { return moved_; }
  // Another thread of the rank, which makes batches, calls this.
  void background(std::string_view name, Time begin, Time end);
  SpanRecorder& recorder() { return recorder_; }

 private:
  struct Interval {
    Time begin, end;
  };
  using Intervals = std::vector<Interval>;
  static Clock::duration overlap(const Intervals& exchanges, const Intervals& others);
  double hidden_seconds() const;
  void close();

  std::atomic<Phase> phase_{Phase::kStarting};
  Time since_ = Clock::now();
  std::array<Clock::duration, kPhases> spent_{};
  Intervals computing_;  // forward and backward passes
  Time waited_until_{};
  Clock::duration busy_{};
  std::atomic<int64_t> step_{0};
  bool is_open_ = false;  // the step has not ended
  double begin_ = 0;
  MovedBytes moved_;
  int64_t seen_sent_ = 0, seen_received_ = 0;  // values of moved_ when the phase began
  int64_t sent_ = 0, received_ = 0;            // in this step
  AccountedStep ended_;
  mutable std::mutex mutex_;  // guards what follows
  Intervals exchanges_, stood_still_;
  SpanRecorder recorder_;
};

}  // namespace lockstep
