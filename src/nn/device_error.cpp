#include "nn/device_error.h"

#include <c10/util/Exception.h>

#include <string>
#include <string_view>

#include "base/text.h"
#include "nn/device_memory.h"

namespace lockstep {

namespace {

// Numbers of cudaError (docs.nvidia.com/cuda/cuda-runtime-api, section 6.37), without its header.
const char* advice_for(int cuda_error) {
  switch (cuda_error) {
    case 35:   // cudaErrorInsufficientDriver
    case 209:  // cudaErrorNoKernelImageForDevice
      return "a driver and a build of torch that fit the GPU (docs/install.md#gpus), or "
             "run.device=cpu";
    case 46:  // cudaErrorDevicesUnavailable
      return "end what else computes on the GPU, or let it be shared: nvidia-smi -c DEFAULT";
    default:
      return "start again, from the newest checkpoint; where it fails again, dmesg | grep Xid says "
             "what the "
             "driver saw of it";
  }
}

// Of errors that have no type of their own.
bool is_of_gpu(std::string_view text) {
  for (const char* start : {"CUDA error", "cuDNN error", "CUDA driver error", "cuBLAS error"}) {
    if (text.starts_with(start)) return true;
  }
  return false;
}

}  // namespace

std::optional<MachineError> device_error(const std::exception& error) {
  if (is_lack_of_memory(error)) return lack_of_memory(error);
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  if (of_torch == nullptr) return std::nullopt;
  const auto* typed = dynamic_cast<const c10::AcceleratorError*>(&error);
  const std::string_view text = trim(of_torch->what_without_backtrace());
  if (typed == nullptr && !is_of_gpu(text)) return std::nullopt;
  MachineError out("a GPU failed");
  out.set_cause(std::string(text.substr(0, text.find('\n'))));
  out.set_advice(advice_for(typed == nullptr ? 0 : typed->get_error_code()));
  return out;
}

}  // namespace lockstep
