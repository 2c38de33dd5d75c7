// What the GPUs of this machine do, by NVIDIA's management library, which comes with the driver and
// is loaded at run time: no GPU or no driver means no figures. Names, types and constants are those
// of the NVML API reference (docs.nvidia.com/deploy/nvml-api), declared here as far as they are
// used.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/machine_figures.h"

namespace lockstep {

// LOCKSTEP_NVML of the environment: another library file, or "none" (then empty: no GPUs are
// looked for); else the driver's.
std::string nvml_library();

// For one thread: a driver in trouble may let it wait for seconds.
class GpuMonitor {
 public:
  // Nothing is logged when there is no library or no GPU, except where `library` is a path: then
  // it was asked for.
  explicit GpuMonitor(const std::string& library);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  int count() const;  // at most kMostGpus
  // `seconds` since the call before: energy is power times time where the GPU has no counter.
  std::span<const GpuFigures> sample(double seconds);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace lockstep
