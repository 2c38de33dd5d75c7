// Runs collective operations among the ranks of one machine through shared memory.
//
// Each member has two slots of half a megabyte that stay in the caches; data passes through them in
// steps. In step s a member writes its slot s % 2, publishes s in its step word, waits until all
// others have done so, and reads their slots. A member that has begun step s + 1 has finished
// reading in step s, and no member gets to step s + 2 before all have begun s + 1: so two slots and
// one wait a step suffice. The numbering of steps continues from one operation to the next.
//
// Every sum is taken in pairs of neighbours (kernels/kernel_table.h), with one rounding for 16-bit
// types (summed in fp32), so the bits depend neither on the size of the chunks nor on how an array
// is cut into operations.
//
// A waiting member spins for some microseconds, then sleeps on the step word of the member
// it waits for and checks from time to time whether that process is alive. A failure is
// written into the memory, so that every member names the same culprit. Only one thread at a
// time may run operations.
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

struct Summation {  // how all_reduce adds elements of one type
  std::size_t element_bytes;
  SumFunction sum;  // of kernels(), or any function with the same contract
};

class LocalGroup {
 public:
  struct Members {
    std::vector<int> ranks;        // numbers in the World, for error texts
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

  // Ends the time in which other members can attach the memory; nothing else refers to
  // the memory afterwards.
  void close_door() { memory_.close_descriptor(); }
  void set_timeout(std::chrono::nanoseconds timeout) { timeout_ = timeout; }
  // Counts in `moved`, from now on, the bytes that this member copies into slots and results, and
  // out of those of others. `moved` must outlive this.
  void count_in(MovedBytes& moved) { moved_ = &moved; }
  int size() const { return static_cast<int>(members_.ranks.size()); }

  // All members call the same operations with the same sizes in the same order. They
  // throw std::runtime_error that names the rank which died, left or hangs; from then
  // on all operations throw.
  void all_reduce(void* data, int64_t count, const Summation& summation);
  void broadcast(std::span<std::byte> data, int root);  // root: index of a member
  // Member m holds the bytes [cuts[m], cuts[m + 1]) of `flat`; on return
  // every member has all bytes.
  void all_gather_slices(std::byte* flat, std::span<const int64_t> cuts);
  void barrier();

  // Tells all members that this one fails for a reason of its own: operations that wait end at
  // once. The only function that may run beside an operation, in another thread.
  void give_up();

 private:
  struct Board;    // at the beginning of the memory
  struct Failure;  // packed into one word of the board

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
  std::vector<std::optional<ProcessHandle>> processes_;  // empty for this member
  std::vector<const void*> inputs_;                      // of a sum, by member
  std::chrono::nanoseconds timeout_ = std::chrono::hours{1};
  std::chrono::steady_clock::time_point started_;  // when the operation began
  uint64_t operation_ = 0;                         // tag of the operation: kind and bytes
  uint32_t step_ = 1;                              // number of the next step
  MovedBytes* moved_ = nullptr;
};

}  // namespace lockstep
