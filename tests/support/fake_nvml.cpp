// A library with the functions of NVML that lockstep uses, for machines without a GPU. It pretends
// that there are two GPUs. FAKE_NVML in the environment may be "no_driver" (init fails), "old" (no
// energy counter, no reasons for slow clocks), "hot" (clocks held down by heat), "lost" (every
// question about a GPU fails) or "hangs" (it takes 6 s to answer).
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

using Device = void*;
constexpr int kSuccess = 0, kNotSupported = 3, kDriverNotLoaded = 9, kLost = 15;

bool is(const char* mode) {
  const char* given = std::getenv("FAKE_NVML");
  return given != nullptr && std::strcmp(given, mode) == 0;
}

// Returns which of the two GPUs it is: 0 or 1.
unsigned long index_of(Device device) { return reinterpret_cast<unsigned long>(device) - 1; }

std::atomic<unsigned long long> questions[2];  // about the energy, by GPU

template <typename Value>
int say(Value* out, Value value) {
  if (is("lost")) return kLost;
  *out = value;
  return kSuccess;
}

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (is("hangs")) sleep(6);
  return is("no_driver") ? kDriverNotLoaded : kSuccess;
}
int nvmlShutdown() { return kSuccess; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = reinterpret_cast<Device>(static_cast<unsigned long>(index) + 1);
  return kSuccess;
}

int nvmlDeviceGetName(Device, char* name, unsigned length) {
  std::strncpy(name, "Invented GPU", length);
  return kSuccess;
}

int nvmlDeviceGetUtilizationRates(Device device, Utilization* use) {
  return say(use, index_of(device) == 0 ? Utilization{87, 41} : Utilization{0, 0});
}

int nvmlDeviceGetMemoryInfo(Device, Memory* memory) {
  return say(memory, Memory{16'000'000'000ULL, 4'000'000'000ULL, 12'000'000'000ULL});
}

int nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
  return say(milliwatts, index_of(device) == 0 ? 61'500U : 9'000U);
}

int nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* milliwatts) {
  return say(milliwatts, 70'000U);
}

// Each call returns 60 J more.
int nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* millijoules) {
  if (is("old")) return kNotSupported;
  return say(millijoules, 5'000'000ULL + 60'000ULL * questions[index_of(device)]++);
}

int nvmlDeviceGetTemperature(Device, int, unsigned* degrees) { return say(degrees, 64U); }

int nvmlDeviceGetClockInfo(Device, int type, unsigned* megahertz) {
  return say(megahertz, type == 1 ? (is("hot") ? 600U : 1'410U) : 5'000U);
}

int nvmlDeviceGetMaxClockInfo(Device, int, unsigned* megahertz) { return say(megahertz, 1'590U); }

int nvmlDeviceGetCurrentClocksThrottleReasons(Device, unsigned long long* reasons) {
  if (is("old")) return kNotSupported;
  return say(reasons, is("hot") ? 0x40ULL : 0x4ULL);
}
}
