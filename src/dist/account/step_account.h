// Accounts for the time of this rank's steps: its phases, as RankProgress marks them, and how much
// of the exchanges with other ranks is hidden behind them. docs/run-folder.md#times-of-every-rank
// says what each figure means and what it does not.
//
// Where a device works behind the rank's thread (device_clock.h), a phase has the time that the
// device took for what was handed over in it, known once the device is there: the phases of a step
// when the next one has its loss. `data` is then the time that the device waited for a batch.
//
// The rank's own thread marks phases; exchanges end on any thread. A step costs a dozen marks, and
// one for each exchange, of some ten nanoseconds each (benchmarks/progress_marks.cpp).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "dist/account/device_clock.h"
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

  // From now on phases have the times of a device. Call it between two steps, as those below from
  // the rank's own thread.
  void use(std::unique_ptr<DeviceClock> clock);
  bool has_device_clock() const { return device_ != nullptr; }
  // Of a device: the end of the work that the calling thread has handed over, and the device's
  // seconds from the beginning of this step's first forward pass to such a mark, for which it
  // waits. Any thread may mark.
  DeviceClock::Mark device_mark() { return device_->mark(); }
  double seconds_of_device_until(const DeviceClock::Mark& mark) const;

  // The rank is in `phase` from `now` on. Call the functions up to so_far() from
  // the rank's own thread.
  void enter(Phase phase, Time now);
  // Ends the step before. When the number is the same again, that step goes on: its batch was lost.
  void begin_step(int64_t step, Time now);
  // Call after the last step.
  void end_step(Time now);
  // Returns the step that ended last; waits for its device, where it has one that is not there yet.
  const AccountedStep& ended();
  // Returns the times of the current step: its finished phases, what they hid and what was moved.
  // Of a device, the phases that it has finished; what they hid is 0 until the step has ended.
  RankTimes so_far() const;

  // This rank was in an exchange of `bytes` of payload. Any thread may call this
  // and the functions below.
  void exchange(std::string_view name, Time begin, Time end, int64_t bytes);
  // The device was given an exchange; when its step has ended, `seconds` tells how long it took.
  // From the rank's own thread or that of its backward pass.
  void device_exchange(std::function<double()> seconds);
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
  struct DevicePart {  // of a step: what was handed over between two marks
    Phase phase;
    DeviceClock::Mark begin, end;
  };
  static Clock::duration overlap(const Intervals& exchanges, const Intervals& others);
  double hidden_seconds() const;
  void add_device_times(const std::vector<DevicePart>& parts, RankTimes& out) const;
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
  std::unique_ptr<DeviceClock> device_;          // null: the rank's thread does the work itself
  DeviceClock::Mark last_mark_, first_forward_;  // the second of this step; null: not there yet
  std::vector<DevicePart> device_parts_, ended_parts_;  // of this step, of the one that ended
  std::vector<std::function<double()>> ended_device_exchanges_;
  mutable std::mutex mutex_;  // guards what follows
  Intervals exchanges_, stood_still_;
  std::vector<std::function<double()>> device_exchanges_;  // of this step
  SpanRecorder recorder_;
};

}  // namespace lockstep
