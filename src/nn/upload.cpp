#include "nn/upload.h"

namespace lockstep {

torch::Tensor upload(const torch::Tensor& host, torch::Device device) {
  if (device.is_cpu()) return host;
  return (host.is_pinned() ? host : host.pin_memory()).to(device, /*non_blocking=*/true);
}

}  // namespace lockstep
