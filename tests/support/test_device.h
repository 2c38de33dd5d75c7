// A device that is not the CPU, for tests of where tensors are. Its memory is the host's, but the
// addresses in its tensors are closed: code that reads or writes one as if it were the CPU's ends
// with a segmentation fault. Operations are torch's for CPUs, on copies (at::native::cpu_fallback),
// so results are those of the plain operations on a CPU, bit by bit where no layout differs. The
// kernels that lockstep has for GPUs run as well, row by row (host_rows.h).
//
// A host has two, or LOCKSTEP_TEST_DEVICES. Each has 4 GiB, or LOCKSTEP_TEST_DEVICE_BYTES, and
// refuses more as a GPU does. LOCKSTEP_TEST_DEVICE_BREAKS=N: the N-th kernel fails, as where a GPU
// has a fault.
//
// In place of a GPU's: allocations (torch's PrivateUse1), copies, pinned memory, events, and
// streams on which everything is done at once.
#pragma once

#include <cstdint>

namespace lockstep {

// Registers the device with torch and makes it what `run.device = "cuda"` names. Call it once,
// before any tensor is made.
void add_test_device();

// What the program itself brought to the device and back since the beginning; what operations copy
// for their own ends does not count. `waits` are those for which a GPU would have to be waited for:
// values that the host reads (item()) and copies to memory that is not pinned.
struct DeviceTraffic {
  int64_t copies_in = 0, copies_out = 0, waits = 0;
  int64_t bytes_in = 0, bytes_out = 0;
  int64_t kernels = 0;       // of lockstep that ran there
  int64_t attentions = 0;    // forward passes of libtorch's attention for packed sentences
  int64_t stream_waits = 0;  // of a stream for an event of another
  int64_t most_bytes = 0;    // that tensors had there at once
};
DeviceTraffic device_traffic();

}  // namespace lockstep
