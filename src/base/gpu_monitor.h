// Reads the state of this machine's GPUs with NVIDIA's management library NVML. The library comes
// with the driver and is loaded at run time: without a GPU or a driver there are no figures. The
// names, types and constants that are used are declared here after the NVML API reference
// (docs.nvidia.com/deploy/nvml-api).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/machine_figures.h"

namespace lockstep {

// Returns the library file that the environment variable LOCKSTEP_NVML names, or else the driver's.
// The value "none" gives an empty name: then no GPUs are looked for.
std::string nvml_library();

// Not thread-safe. Calls may block for seconds when a driver has problems.
class GpuMonitor {
 public:
  // Logs nothing when there is no library or no GPU, unless `library` is a path: then the user
  // asked for it.
  explicit GpuMonitor(const std::string& library);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  int count() const;  // at most kMostGpus
  // `seconds` is the time since the previous call. It is used for GPUs without an energy counter,
  // whose energy is computed as power times time.
  std::span<const GpuFigures> sample(double seconds);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace lockstep
