// Processes numbered blocks on all cores and delivers the results in order.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {

// Calls read() until it returns nothing (one call at a time, in order), work(item) for each item on
// `threads` threads, and emit(result) in order on the calling thread. At most 4 results per thread
// wait for emit, so memory stays bounded however slow emit is. The first exception of any of the
// three stops everything and is rethrown here.
template <typename Read, typename Work, typename Emit>
void ordered_stream(int64_t threads, const Read& read, const Work& work, const Emit& emit) {
  using Item = typename decltype(read())::value_type;
  using Result = decltype(work(std::declval<Item>()));
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, Result> ready;
  std::exception_ptr failure;
  std::mutex reading;  // locked before `mutex`
  int64_t next = 0;
  int64_t emitted = 0;
  int64_t total = INT64_MAX;  // known once read() has returned nothing
  auto take = [&]() -> std::optional<std::pair<int64_t, Item>> {
    std::lock_guard turn(reading);
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return failure || next < emitted + 4 * threads; });
      if (failure || total != INT64_MAX) return std::nullopt;
    }
    std::optional<Item> item = read();
    std::lock_guard lock(mutex);
    if (item) return std::pair(next++, std::move(*item));
    total = next;
    return std::nullopt;
  };
  auto run = [&] {
    for (bool more = true; more; changed.notify_all()) {
      try {
        std::optional<std::pair<int64_t, Item>> taken = take();
        more = taken.has_value();
        if (!more) continue;
        Result result = work(std::move(taken->second));
        std::lock_guard lock(mutex);
        ready.emplace(taken->first, std::move(result));
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> workers;
  for (int64_t i = 0; i < threads; ++i) workers.emplace_back(run);
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return failure || emitted == total || ready.contains(emitted); });
    if (failure || emitted == total) break;
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

// Does the same for the block numbers [0, blocks).
template <typename Work, typename Emit>
void ordered_parallel(int64_t blocks, int64_t threads, const Work& work, const Emit& emit) {
  int64_t next = 0;
  auto read = [&] { return next < blocks ? std::optional(next++) : std::nullopt; };
  ordered_stream(threads, read, work, emit);
}

}  // namespace lockstep
