#include "base/gpu_monitor.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/log.h"

namespace lockstep {
namespace {

// NVML API reference: nvmlReturn_t, nvmlDevice_t, nvmlUtilization_t, nvmlMemory_t.
using Result = int;
using Device = void*;
constexpr Result kSuccess = 0;
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;  // bytes
};
constexpr int kCoreTemperature = 0;               // NVML_TEMPERATURE_GPU
constexpr int kSmClock = 1, kMemoryClock = 2;     // NVML_CLOCK_SM, NVML_CLOCK_MEM
constexpr unsigned long long kPowerCap = 0x4;     // nvmlClocksThrottleReasonSwPowerCap
constexpr unsigned long long kSlowDown = 0x8      // ...HwSlowdown
                                         | 0x20   // ...SwThermalSlowdown
                                         | 0x40   // ...HwThermalSlowdown
                                         | 0x80;  // ...HwPowerBrakeSlowdown

struct Functions {
  Result (*init)() = nullptr;
  Result (*shutdown)() = nullptr;
  Result (*count)(unsigned*) = nullptr;
  Result (*handle)(unsigned, Device*) = nullptr;
  Result (*name)(Device, char*, unsigned) = nullptr;
  Result (*utilization)(Device, Utilization*) = nullptr;
  Result (*memory)(Device, Memory*) = nullptr;
  Result (*power)(Device, unsigned*) = nullptr;              // milliwatts
  Result (*limit)(Device, unsigned*) = nullptr;              // milliwatts
  Result (*energy)(Device, unsigned long long*) = nullptr;   // millijoules since the driver loaded
  Result (*temperature)(Device, int, unsigned*) = nullptr;   // degrees Celsius
  Result (*clock)(Device, int, unsigned*) = nullptr;         // MHz
  Result (*most_clock)(Device, int, unsigned*) = nullptr;    // MHz
  Result (*reasons)(Device, unsigned long long*) = nullptr;  // why clocks are below the highest
};

template <typename Function>
void find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
}

Functions functions_of(void* library) {
  Functions f;
  find(library, "nvmlInit_v2", f.init);
  find(library, "nvmlShutdown", f.shutdown);
  find(library, "nvmlDeviceGetCount_v2", f.count);
  find(library, "nvmlDeviceGetHandleByIndex_v2", f.handle);
  find(library, "nvmlDeviceGetName", f.name);
  find(library, "nvmlDeviceGetUtilizationRates", f.utilization);
  find(library, "nvmlDeviceGetMemoryInfo", f.memory);
  find(library, "nvmlDeviceGetPowerUsage", f.power);
  find(library, "nvmlDeviceGetEnforcedPowerLimit", f.limit);
  find(library, "nvmlDeviceGetTotalEnergyConsumption", f.energy);
  find(library, "nvmlDeviceGetTemperature", f.temperature);
  find(library, "nvmlDeviceGetClockInfo", f.clock);
  find(library, "nvmlDeviceGetMaxClockInfo", f.most_clock);
  find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", f.reasons);
  return f;
}

// Returns what the function reports times `scale`, or -1 when the function is missing or fails.
template <typename Value, typename Function, typename... Args>
double ask(const Function& function, double scale, Args... args) {
  Value value{};
  if (function == nullptr || function(args..., &value) != kSuccess) return -1;
  return static_cast<double>(value) * scale;
}

}  // namespace

std::string nvml_library() {
  const char* given = std::getenv("LOCKSTEP_NVML");
  if (given == nullptr || *given == '\0') return "libnvidia-ml.so.1";
  return std::strcmp(given, "none") == 0 ? "" : given;
}

struct GpuMonitor::Library {
  void* handle = nullptr;
  Functions call;
  bool begun = false;
  std::vector<Device> devices;
  std::vector<double> first_joules;  // the energy counters at the start; below 0: none
  std::vector<GpuFigures> figures;

  ~Library() {
    if (begun && call.shutdown != nullptr) call.shutdown();
    if (handle != nullptr) dlclose(handle);
  }

  // Returns an empty string, or what is wrong.
  std::string open(const std::string& path) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return dlerror();
    call = functions_of(handle);
    if (call.init == nullptr || call.count == nullptr || call.handle == nullptr) {
      return "it is not NVML";
    }
    if (Result code = call.init(); code != kSuccess) {
      return fmt::format("nvmlInit_v2 failed with code {}", code);
    }
    begun = true;
    unsigned count = 0;
    if (call.count(&count) != kSuccess) return "it cannot count GPUs";
    for (unsigned i = 0; i < std::min<unsigned>(count, kMostGpus); ++i) {
      Device device = nullptr;
      if (call.handle(i, &device) == kSuccess) add(device);
    }
    return "";
  }

  void add(Device device) {
    GpuFigures gpu;
    if (call.name != nullptr) call.name(device, gpu.name, sizeof gpu.name - 1);
    gpu.limit_watts = static_cast<float>(ask<unsigned>(call.limit, 1e-3, device));
    gpu.most_sm_megahertz = static_cast<float>(ask<unsigned>(call.most_clock, 1, device, kSmClock));
    devices.push_back(device);
    first_joules.push_back(ask<unsigned long long>(call.energy, 1e-3, device));
    figures.push_back(gpu);
  }

  void look_at(std::size_t i, double seconds) {
    Device device = devices[i];
    GpuFigures& gpu = figures[i];
    Utilization use{};
    const bool known = call.utilization != nullptr && call.utilization(device, &use) == kSuccess;
    gpu.use = known ? static_cast<float>(use.gpu) / 100 : -1;
    gpu.memory_use = known ? static_cast<float>(use.memory) / 100 : -1;
    Memory memory{};
    if (call.memory != nullptr && call.memory(device, &memory) == kSuccess) {
      gpu.memory_bytes = static_cast<int64_t>(memory.total);
      gpu.memory_used_bytes = static_cast<int64_t>(memory.used);
    }
    gpu.watts = static_cast<float>(ask<unsigned>(call.power, 1e-3, device));
    gpu.temperature =
        static_cast<float>(ask<unsigned>(call.temperature, 1, device, kCoreTemperature));
    gpu.sm_megahertz = static_cast<float>(ask<unsigned>(call.clock, 1, device, kSmClock));
    gpu.memory_megahertz = static_cast<float>(ask<unsigned>(call.clock, 1, device, kMemoryClock));
    unsigned long long reasons = 0;
    const bool told = call.reasons != nullptr && call.reasons(device, &reasons) == kSuccess;
    gpu.slowed = !told ? -1.0F : (reasons & kSlowDown) != 0 ? 1.0F : 0.0F;
    gpu.capped = !told ? -1.0F : (reasons & kPowerCap) != 0 ? 1.0F : 0.0F;
    const double joules =
        first_joules[i] < 0 ? -1 : ask<unsigned long long>(call.energy, 1e-3, device);
    if (joules >= first_joules[i] && joules >= 0) {
      gpu.joules = joules - first_joules[i];
    } else if (gpu.watts >= 0) {
      gpu.joules += static_cast<double>(gpu.watts) * seconds;
    }
  }
};

GpuMonitor::GpuMonitor(const std::string& library) : library_(std::make_unique<Library>()) {
  if (library.empty()) return;
  const std::string trouble = library_->open(library);
  if (!trouble.empty() && library.find('/') != std::string::npos) {
    log_warning("no figures of GPUs: LOCKSTEP_NVML={}: {}", library, trouble);
  }
}

GpuMonitor::~GpuMonitor() = default;

int GpuMonitor::count() const { return static_cast<int>(library_->devices.size()); }

std::span<const GpuFigures> GpuMonitor::sample(double seconds) {
  for (std::size_t i = 0; i < library_->devices.size(); ++i) library_->look_at(i, seconds);
  return library_->figures;
}

}  // namespace lockstep
