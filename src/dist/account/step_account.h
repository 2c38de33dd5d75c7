// Where the time of this rank's steps goes: its phases, as RankProgress marks them, and how much of
// the exchanges with other ranks they hide. docs/run-folder.md#times-of-every-rank says what each
// figure means and what it does not.
//
// Phases are marked by the rank's own thread, exchanges end on any. A step costs a dozen marks and
// one for each exchange, each of some ten nanoseconds (benchmarks/progress_marks.cpp).
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
  RankTimes times;   // all but `peers`, which takes the other ranks' figures
  double busy = 0;   // from the ends of its waits to the begins of the next ones; 0: not known
};

class StepAccount {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // By the rank's own thread. From `now` on the rank is in `phase`.
  void enter(Phase phase, Time now);
  // Ends the step before. The same number once more goes on with that step: its batch was lost.
  void begin_step(int64_t step, Time now);
  // After the last step.
  void end_step(Time now);
  // The step that ended last.
  const AccountedStep& ended() const { return ended_; }
  // Of the step under way: its phases that are over, what they hid and moved.
  RankTimes so_far() const;

  // By any thread. This rank was in an exchange of `bytes` of payload.
  void exchange(std::string_view name, Time begin, Time end, int64_t bytes);
  // A forward or backward pass stood still for an exchange, which it did not hide.
  void stood_still(Time begin, Time end);
  MovedBytes& moved() { return moved_; }
  // By another thread of the rank, which makes batches.
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
  Intervals computing_;  // forward and backward
  Time waited_until_{};
  Clock::duration busy_{};
  std::atomic<int64_t> step_{0};
  bool is_open_ = false;  // the step has not ended
  double begin_ = 0;
  MovedBytes moved_;
  int64_t seen_sent_ = 0, seen_received_ = 0;  // of moved_, when the phase began
  int64_t sent_ = 0, received_ = 0;            // of the step
  AccountedStep ended_;
  mutable std::mutex mutex_;  // of what follows
  Intervals exchanges_, stood_still_;
  SpanRecorder recorder_;
};

}  // namespace lockstep
