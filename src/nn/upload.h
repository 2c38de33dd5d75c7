// Brings tensors that the host has filled to the device of the network.
#pragma once

#include <torch/types.h>

namespace lockstep {

// Returns a copy of `host` on `device`, through pinned memory, so that the host does not wait for
// the device; on the CPU `host` itself. Work that is queued on the device later finds it there.
torch::Tensor upload(const torch::Tensor& host, torch::Device device);

}  // namespace lockstep
