// Work on numbered blocks with all cores, results in order.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {

inline int64_t available_cores() {
  return std::max<int64_t>(1, static_cast<int64_t>(std::thread::hardware_concurrency()));
}

// Calls work(block) for every block in [0, blocks) on `threads` threads and emit(result) in order
// on the calling thread. At most 4 results a thread wait, so memory is bounded however slow emit
// is. The first exception of either stops everything and is thrown here.
template <typename Work, typename Emit>
void ordered_parallel(int64_t blocks, int64_t threads, const Work& work, const Emit& emit) {
  using Result = decltype(work(int64_t{0}));
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, Result> ready;
  std::exception_ptr failure;
  int64_t next = 0;
  int64_t emitted = 0;
  auto run = [&] {
    while (true) {
      int64_t block;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return failure || next < emitted + 4 * threads; });
        if (failure || next >= blocks) return;
        block = next++;
      }
      try {
        Result result = work(block);
        std::lock_guard lock(mutex);
        ready.emplace(block, std::move(result));
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
      changed.notify_all();
    }
  };
  std::vector<std::jthread> workers;
  for (int64_t i = 0; i < threads; ++i) workers.emplace_back(run);
  std::unique_lock lock(mutex);
  while (emitted < blocks) {
    changed.wait(lock, [&] { return failure || ready.contains(emitted); });
    if (failure) break;
    auto node = ready.extract(emitted);
    lock.unlock();
    try {
      emit(std::move(node.mapped()));
      lock.lock();
    } catch (...) {
      lock.lock();
      if (!failure) failure = std::current_exception();
    }
    ++emitted;
    changed.notify_all();
  }
  lock.unlock();
  workers.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lockstep
