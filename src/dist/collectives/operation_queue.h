// Runs operations one after the other, in the order in which they were added, on a thread of its
// own, so that gradients are exchanged during the backward pass. The thread sleeps while there is
// nothing to do.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace lockstep {

class OperationQueue {
 public:
  OperationQueue();
  // Waits for the running operation and drops those that have not begun: their futures throw
  // std::future_error.
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  // The future becomes ready when the operation ends, and holds what the operation threw.
  std::shared_future<void> add(std::function<void()> operation);
  // Waits until all added operations have ended; returns false when the limit passed first. Cheap
  // when the queue is empty.
  bool drain(std::chrono::nanoseconds limit);
  void drain();

 private:
  void run();
  bool idle() const { return unfinished_.load(std::memory_order_acquire) == 0; }

  std::mutex mutex_;  // guards what follows
  std::condition_variable added_, drained_;
  std::deque<std::packaged_task<void()>> waiting_;
  bool stopping_ = false;
  std::atomic<int> unfinished_ = 0;  // changed under the mutex
  std::thread thread_;               // last: uses all the others
};

}  // namespace lockstep
