// Counts the payload bytes that this rank has put into sockets and shared memory for others, and
// taken out that others had put there. Whichever thread moves bytes counts them.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep {

class MovedBytes {
 public:
  void add(int64_t sent, int64_t received) {
    sent_.fetch_add(sent, std::memory_order_relaxed);
    received_.fetch_add(received, std::memory_order_relaxed);
  }
  int64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  int64_t received() const { return received_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> sent_{0}, received_{0};
};

}  // namespace lockstep
