// Keeps the progress of this rank: its step, its phase, the operations that it started and the one
// it waits for. The rank's own threads write it on every phase and operation, the heartbeat's
// thread reads it. Phases and waits are relaxed atomics; operations take a mutex that is free
// except for two moments a second. A step costs about a dozen such marks of some ten nanoseconds
// each (benchmarks/progress_marks.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/account/phase.h"
#include "dist/account/step_account.h"

namespace lockstep {

// One operation of a World, in the form in which ranks compare operations. Trivially copyable,
// because it is sent.
struct OperationRecord {
  uint64_t sequence = 0;      // counts from 1
  uint64_t fingerprint = 0;   // of this operation and all before it; equal on ranks that agree
  int64_t numel = 0;          // elements of `type`
  char name[48] = {};         // truncated to fit
  char type[8] = {};          // "fp32", "int64"; empty where the operation has no elements
  uint64_t own_hash() const;  // of name, numel and type
  std::string text() const;   // "all-reduce of gradient bucket 3, 1,024 x fp32 (operation 17)"
};

// Sums over the steps since the World began; the difference of two such sums
// says how time was spent.
struct StepSums {
  int64_t steps = 0;
  int64_t targets = 0;  // of all ranks
  double compute_seconds = 0, wait_seconds = 0, data_seconds = 0;
  double seconds() const { return compute_seconds + wait_seconds + data_seconds; }
};

namespace detail {

// Copies `text`, truncated to fit, and fills up with zeros.
template <std::size_t N>
void copy_text(std::string_view text, char (&out)[N]) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memcpy(out, text.data(), length);
  std::memset(out + length, 0, N - length);
}

}  // namespace detail

struct ProgressView {  // trivially copyable, because it is sent
  int64_t step = 0, epoch = 0;
  Phase phase = Phase::kStarting;
  double phase_seconds = 0;    // since the phase began
  uint64_t started = 0;        // sequence number of the operation started last
  uint64_t waiting = 0;        // sequence number of the operation waited for; 0: none
  double waiting_seconds = 0;  // since that wait began
  StepSums sums;
};

class RankProgress {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kRemembered = 2048;

  void enter(Phase phase);
  void begin_step(int64_t step, int64_t epoch);
  void end_step(const StepSums& of_one_step);

  // The account of the steps' time and of the operations' exchanges, made from these marks.
  StepAccount& account() { return account_; }

  // Counts an operation and returns its sequence number. Call it from one thread at a time.
  uint64_t start_operation(std::string_view name, int64_t numel, std::string_view type);
  // Marks that the rank waits for an operation while this object lives.
  class Waiting {
   public:
    Waiting(RankProgress& progress, uint64_t sequence) : progress_(progress) {
      progress_.begin_wait(sequence);
    }
    ~Waiting() { progress_.end_wait(); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    RankProgress& progress_;
  };

  ProgressView view() const;
  // Returns the newest `most` operations, oldest first.
  std::vector<OperationRecord> operations(std::size_t most) const;
  OperationRecord last_operation() const;
  // Returns the operation with that number, or nothing when it is no longer remembered.
  std::optional<OperationRecord> operation(uint64_t sequence) const;

 private:
  void begin_wait(uint64_t sequence);
  void end_wait();

  std::atomic<int64_t> step_{0}, epoch_{0};
  std::atomic<Phase> phase_{Phase::kStarting};
  std::atomic<Clock::duration::rep> phase_since_{Clock::now().time_since_epoch().count()};
  std::atomic<uint64_t> waiting_{0};
  std::atomic<Clock::duration::rep> waiting_since_{0};
  StepAccount account_;
  mutable std::mutex mutex_;  // guards what follows
  StepSums sums_;
  uint64_t started_ = 0;
  std::array<OperationRecord, kRemembered> operations_;  // operation s at s % kRemembered
};

}  // namespace lockstep
