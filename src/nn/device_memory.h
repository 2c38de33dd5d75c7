// The memory that tensors have on a device, and how a lack of it is told.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <string>

#include "base/error.h"

namespace lockstep {

// Sizes are in bytes.
class DeviceMemory {
 public:
  explicit DeviceMemory(c10::Device device) : device_(device) {}

  void reset_peak() const;
  void give_back() const;  // returns what this process holds unused to the system
  int64_t peak() const;    // of in_use() since reset_peak()
  int64_t in_use() const;  // by tensors
  // Returns what other processes leave free; on the CPU, plus what this one holds unused. Throws
  // MachineError where the system does not tell.
  int64_t available() const;

 private:
  c10::Device device_;
};

// Returns whether an operation failed because a device, or the host, has no memory left.
bool is_lack_of_memory(const std::exception& error);

// Returns what the allocator says of it, in a line, without places in the source and advice for
// Python.
std::string allocator_text(const std::exception& error);

// Returns the error for such an exception: "not enough memory" with what the allocator said of it.
MachineError lack_of_memory(const std::exception& error);
// The same where it is known what takes how many bytes in all: "cuda:0 has not the memory for
// `what`: 1.2 GB, and there are 0.8 GB".
MachineError lack_of_memory(const std::exception& error, c10::Device device,
                            const std::string& what, int64_t bytes);

}  // namespace lockstep
