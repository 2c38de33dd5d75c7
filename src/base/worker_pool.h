// A pool of threads that process the numbered items of jobs. The caller of a job works on it too.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep {

class WorkerPool {
 public:
  // `threads` counts the caller of run() as one of the threads.
  explicit WorkerPool(int64_t threads) {
    for (int64_t i = 1; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~WorkerPool() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Calls work(i) for every i in [0, items), in any order, on any of the threads, and returns when
  // all calls are done. If several calls throw, it rethrows the exception of the smallest i.
  // Several threads may call run() at once.
  void run(int64_t items, const std::function<void(int64_t)>& work) {
    Job job{&work, items};
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(&job);
    }
    changed_.notify_all();
    help(job);
    std::unique_lock lock(mutex_);
    std::erase(jobs_, &job);
    changed_.wait(lock, [&] { return job.helpers == 0; });
    if (job.failure) std::rethrow_exception(job.failure);
  }

 private:
  struct Job {
    const std::function<void(int64_t)>* work;
    int64_t items;
    std::atomic<int64_t> next{0};
    int64_t helpers = 0;  // guarded by mutex_, like the members below
    int64_t failed = INT64_MAX;
    std::exception_ptr failure;
  };

  void help(Job& job) {
    for (int64_t i; (i = job.next.fetch_add(1)) < job.items;) {
      try {
        (*job.work)(i);
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (i < job.failed) {
          job.failed = i;
          job.failure = std::current_exception();
        }
      }
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      Job& job = *jobs_.front();
      if (job.next >= job.items) {  // all items are handed out; run() waits for the last ones
        jobs_.pop_front();
        continue;
      }
      ++job.helpers;
      lock.unlock();
      help(job);
      lock.lock();
      if (--job.helpers == 0) changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> jobs_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

}  // namespace lockstep
