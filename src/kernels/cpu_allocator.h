// Memory of CPU tensors that stays: freed blocks are kept and given out again, not returned to
// the system. A page that the kernel must supply costs microseconds; a training step asks for the
// same few hundred sizes every time, so after the first steps there are no new pages.
#pragma once

#include <cstdint>

namespace lockstep {

// From now on all CPU tensors of libtorch come from the caching allocator. Call once, early;
// tensors made before are freed by the allocator that made them. Later calls do nothing.
void use_caching_allocator();

struct AllocatorStatistics {
  int64_t bytes_held = 0;    // taken from the system so far, in use or free; never given back
  int64_t bytes_in_use = 0;  // of these, blocks that belong to a tensor now
  int64_t peak_bytes = 0;    // the most that were in use since reset_peak_bytes()
  int64_t hits = 0;          // requests served from what was held
  int64_t misses = 0;        // requests that needed more
};
AllocatorStatistics allocator_statistics();
void reset_peak_bytes();  // to what is in use now

// Gives the pages of large free blocks back to the system. They stay held, as address space, and
// come back when used: for once after trials, not for every step.
void give_back_free_pages();

}  // namespace lockstep
