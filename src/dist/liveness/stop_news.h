// Tells a rank that the run is to stop, whichever rank the signal reached, and after which step
// groups that count steps on their own (train/parts/local_steps.h) meet for it. The heartbeats
// carry it (heartbeat.h), so that a rank knows within a second what it does meanwhile.
//
// Rank 0 asks every rank for the first step that it could still stop after, and announces the
// largest. From the question to the announcement no rank decides about a further step, so that all
// can stop after the one announced.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace lockstep {

struct StopMessage {  // trivially copyable, because it is sent
  enum Kind : int32_t {
    kAsked,  // to rank 0: a signal came; to the others: it did, which step is your first?
    kFirst,  // to rank 0: the answer
    kStep,   // to the others: all stop after this step
  };
  Kind kind = kAsked;
  int64_t step = 0;
};

class StopNews {
 public:
  // The signal that reached this process, 0: none; outlives this. Call it before the first step.
  void follow(const std::atomic<int>* signal) { signal_ = signal; }

  // Whether this rank or another was asked to stop. Any thread may call these two.
  bool asked() const { return asked_.load(std::memory_order_relaxed) || here(); }
  bool here() const;  // this rank itself was

  // Call this after a step that all ranks took together.
  void passed(int64_t step);
  // Call this once after each step that groups take on their own. Returns whether all ranks stop
  // after it, or after an earlier one that they took together. Waits for the announcement, if rank
  // 0 has asked; nobody's answer waits for the work of a rank.
  bool ends_at(int64_t step);

  // For the heartbeat's thread. hold() returns the first step that this rank can stop after.
  int64_t hold();
  void announce(int64_t step);
  void release();  // no announcement will come

 private:
  std::atomic<const std::atomic<int>*> signal_{nullptr};
  std::atomic<bool> asked_{false};
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int64_t first_ = 0;  // the first step about which this rank has not decided
  bool held_ = false, released_ = false;
  std::optional<int64_t> step_;
};

}  // namespace lockstep
