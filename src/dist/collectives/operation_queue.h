// Runs operations one after the other, in the order in which they were put in, on a thread of its
// own: gradients travel while the backward pass goes on. Sleeps while there is nothing to do.
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
  // Waits for the operation under way and drops those that have not begun: their futures throw
  // std::future_error.
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  // The future ends with the operation and holds what it threw.
  std::shared_future<void> add(std::function<void()> operation);
  // Until all that was added has ended; false when the time was over first. Cheap when nothing is
  // there.
  bool drain(std::chrono::nanoseconds limit);
  void drain();

 private:
  void run();
  bool idle() const { return unfinished_.load(std::memory_order_acquire) == 0; }

  std::mutex mutex_;  // of what follows
  std::condition_variable added_, drained_;
  std::deque<std::packaged_task<void()>> waiting_;
  bool stopping_ = false;
  std::atomic<int> unfinished_ = 0;  // changed under the mutex
  std::thread thread_;               // last: it uses all the others
};

}  // namespace lockstep
