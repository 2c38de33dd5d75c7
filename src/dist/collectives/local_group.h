// Collective operations of the ranks of one machine through shared memory.
//
// Each member has two slots of half a megabyte that stay in the caches; data passes through them in
// steps. In step s a member writes its slot s % 2, counts its step word up, waits until all others
// have, and reads theirs. Whoever has begun step s + 1 is done with what it read in step s, and
// nobody gets to step s + 2 before all have begun s + 1: so two slots and one wait a step suffice.
// The steps go on from one operation to the next.
//
// Every sum is taken in the order of the members with one rounding for 16-bit types (in fp32), so
// the bits depend neither on the size of the chunks nor on how an array is cut into operations.
//
// Waiting spins for some microseconds, then sleeps on the step word of the member waited for and
// looks from time to time whether its process is alive. What fails is written into the memory, so
// that every member names the same culprit. One thread at a time may run operations.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dist/account/moved_bytes.h"
#include "dist/collectives/shared_memory.h"
#include "kernels/kernel_table.h"

namespace lockstep {

struct Summation {  // what all_reduce does with elements of one type
  std::size_t element_bytes;
  SumFunction sum;  // of kernels(), or any function of the same kind
};

class LocalGroup {
 public:
  struct Members {
    std::vector<int> ranks;        // in the World: for error texts
    std::vector<pid_t> processes;  // by member
    int me = 0;                    // index into both
  };
  static std::size_t bytes_for(std::size_t members);

  // `memory`: bytes_for(members) bytes, created by one member and attached by the others. Throws
  // MachineError when a process cannot be watched.
  LocalGroup(Members members, SharedMemory memory);
  ~LocalGroup();
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;

  // The memory's creator lets others in until then; nothing else refers to the memory afterwards.
  void close_door() { memory_.close_descriptor(); }
  void set_timeout(std::chrono::nanoseconds timeout) { timeout_ = timeout; }
  // Bytes that this member copies into slots and results, and out of those of others, from now on;
  // outlives this.
  void count_in(MovedBytes& moved) { moved_ = &moved; }
  int size() const { return static_cast<int>(members_.ranks.size()); }

  // All members call the same operations with the same sizes in the same order. They throw
  // std::runtime_error that names the rank which died, left or hangs; from then on all do.
  void all_reduce(void* data, int64_t count, const Summation& summation);
  void broadcast(std::span<std::byte> data, int root);  // root: a member's index
  // Member m holds the bytes [cuts[m], cuts[m + 1]) of `flat`; afterwards every member has all.
  void all_gather_slices(std::byte* flat, std::span<const int64_t> cuts);
  void barrier();

  // Says to all that this member fails for a reason of its own: operations that wait end at once.
  // The only function that may run beside an operation, in another thread.
  void give_up();

 private:
  struct Board;    // at the begin of the memory
  struct Failure;  // as a word of it

  void begin(uint64_t kind, uint64_t bytes);
  void step();
  bool has_published(int member) const;
  bool spin_for(int member) const;
  void wait_for(int member);
  void look_after(int member);
  void wake_members();
  [[noreturn]] void fail(const Failure& failure);
  [[noreturn]] void throw_failure(uint64_t word) const;
  void moved(int64_t sent, int64_t received) const {
    if (moved_ != nullptr) moved_->add(sent, received);
  }
  std::byte* slot(int member) const;
  std::byte* result(uint32_t step) const;
  void reduce_whole(std::byte* data, int64_t count, const Summation& summation);
  void reduce_in_parts(std::byte* data, int64_t count, const Summation& summation);

  Members members_;
  SharedMemory memory_;
  Board* board_;
  std::vector<std::optional<ProcessHandle>> processes_;  // none for this one
  std::vector<const void*> inputs_;                      // of a sum, by member
  std::chrono::nanoseconds timeout_ = std::chrono::hours{1};
  std::chrono::steady_clock::time_point started_;  // the operation
  uint64_t operation_ = 0;                         // its tag: kind and bytes
  uint32_t step_ = 1;                              // the next one
  MovedBytes* moved_ = nullptr;
};

}  // namespace lockstep
