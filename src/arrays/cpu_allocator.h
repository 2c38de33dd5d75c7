// Provides a caching allocator for CPU tensors: freed blocks are kept and given out again, not
// returned to the system. A page that the kernel must supply costs microseconds; a training step
// asks for the same few hundred sizes every time, so after the first steps there are no new pages.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace lockstep {

// Makes the caching allocator the source of all CPU tensors of libtorch from now on. Call it once,
// early; tensors made before are freed by the allocator that made them. Later calls do nothing.
void use_caching_allocator();

struct AllocatorStatistics {
  int64_t bytes_held = 0;    // taken from the system so far, in use or free; never given back
  int64_t bytes_in_use = 0;  // the part of bytes_held that belongs to tensors now
  int64_t peak_bytes = 0;    // the largest bytes_in_use since reset_peak_bytes()
  int64_t hits = 0;          // requests served from memory held already
  int64_t misses = 0;        // requests that needed new memory
};
AllocatorStatistics allocator_statistics();
void reset_peak_bytes();  // sets the peak to what is in use now

// Thrown where a tensor's memory is not to be had.
class TensorMemoryError : public MachineError {
 public:
  using MachineError::MachineError;
};

// While it exists, a tensor that this thread makes must not bring the bytes in use by all tensors
// above `bytes`: TensorMemoryError is thrown instead. 0: no limit.
class TensorLimit {
 public:
  explicit TensorLimit(int64_t bytes);
  ~TensorLimit();
  TensorLimit(const TensorLimit&) = delete;
  TensorLimit& operator=(const TensorLimit&) = delete;

 private:
  int64_t before_;
};

// Gives the pages of large free blocks back to the system. The blocks stay held as address
// space, and their pages come back when they are used. Meant to be called once after
// trials, not in every step.
void give_back_free_pages();

}  // namespace lockstep
