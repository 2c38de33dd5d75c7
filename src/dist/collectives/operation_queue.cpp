#include "dist/collectives/operation_queue.h"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace lockstep {

OperationQueue::OperationQueue() {
  // Signals are for the program's main thread: the new thread inherits a mask that blocks them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

OperationQueue::~OperationQueue() {
  {
    std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  added_.notify_one();
  thread_.join();
}

std::shared_future<void> OperationQueue::add(std::function<void()> operation) {
  std::packaged_task<void()> task(std::move(operation));
  std::shared_future<void> result = task.get_future().share();
  {
    std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(task));
    unfinished_.fetch_add(1, std::memory_order_relaxed);
  }
  added_.notify_one();
  return result;
}

bool OperationQueue::drain(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  return drained_.wait_for(lock, limit, [this] { return idle(); });
}

void OperationQueue::drain() {
  if (idle()) return;
  std::unique_lock lock(mutex_);
  drained_.wait(lock, [this] { return idle(); });
}

void OperationQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    std::packaged_task<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
    lock.lock();
    unfinished_.fetch_sub(1, std::memory_order_release);
    if (idle()) drained_.notify_all();
  }
}

}  // namespace lockstep
