#include "dist/collectives/cuda.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/cuda.h>

#include <string_view>

#include "base/file.h"
#include "base/module.h"

namespace lockstep {

namespace {

const Module& module() {
  static const Module loaded = load_module("liblockstep_cuda.so", "lockstep_cuda_functions");
  return loaded;
}

struct Gpus {
  int count = 0;
  std::string why;  // why there is none
};

// Returns the driver's library, which stays loaded; null where there is none.
void* driver() { return ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL); }

bool torch_has_cuda() {
  Dl_info torch{};
  if (::dladdr(reinterpret_cast<void*>(&torch::cuda::device_count), &torch) == 0) return false;
  return fs::exists(fs::path(torch.dli_fname).parent_path() / "libtorch_cuda.so");
}

template <class Function>
Function* driver_function(const char* name) {
  void* const library = driver();
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

// The newest CUDA that the driver knows, 13000 for 13.0; 0 where it does not tell.
int driver_version() {
  const auto tell = driver_function<int(int*)>("cuDriverGetVersion");
  int version = 0;
  return tell != nullptr && tell(&version) == 0 ? version : 0;
}

std::string release_of(int cuda) { return fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10); }

Gpus look_for_gpus() {
  if (driver() == nullptr) return {0, "no NVIDIA driver (libcuda.so.1)"};
  if (!torch_has_cuda()) return {0, "this torch is a build for CPUs alone"};
  if (cuda_functions() == nullptr) return {0, "no module for CUDA: " + module().why};
  if (const std::optional<GpuModel> gpu = gpu_model(0)) {
    const std::string why = why_unsuited(*gpu, driver_version(), cuda_functions()->cuda_version);
    if (!why.empty()) return {0, why};
  }
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): torch's number of a device has 8 bits.
  const auto count = static_cast<int>(torch::cuda::device_count());
  if (count > 0) use_gpu_kernels(cuda_functions()->kernels());
  return {count, count == 0 ? "the driver shows no GPU that this torch can use" : ""};
}

// What stands in for GPUs, in tests.
struct StandIn {
  c10::DeviceType type = c10::DeviceType::CUDA;
  int count = 0;
  const CudaFunctions* functions = nullptr;
};
StandIn& stand_in() {
  static StandIn one;
  return one;
}

const Gpus& gpus() {
  static const Gpus found = stand_in().count > 0 ? Gpus{stand_in().count, ""} : look_for_gpus();
  return found;
}

}  // namespace

const CudaFunctions* cuda_functions() {
  if (stand_in().functions != nullptr) return stand_in().functions;
  using Function = const CudaFunctions* (*)();
  if (module().function == nullptr) return nullptr;
  return reinterpret_cast<Function>(module().function)();
}

// Uses names and numbers of the CUDA driver API (docs.nvidia.com/cuda/cuda-driver-api), whose
// headers a build without CUDA does not have.
std::optional<GpuModel> gpu_model(int index) {
  using Result = int;
  using Device = int;
  constexpr Result kSuccess = 0;
  constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...
  const auto init = driver_function<Result(unsigned)>("cuInit");
  const auto get = driver_function<Result(Device*, int)>("cuDeviceGet");
  const auto tell_name = driver_function<Result(char*, int, Device)>("cuDeviceGetName");
  const auto tell = driver_function<Result(int*, int, Device)>("cuDeviceGetAttribute");
  if (init == nullptr || get == nullptr || tell_name == nullptr || tell == nullptr) {
    return std::nullopt;
  }
  Device device = 0;
  GpuModel out;
  char name[128] = "";
  if (init(0) != kSuccess || get(&device, index) != kSuccess ||
      tell_name(name, sizeof name - 1, device) != kSuccess ||
      tell(&out.major, kMajor, device) != kSuccess ||
      tell(&out.minor, kMinor, device) != kSuccess) {
    return std::nullopt;
  }
  out.name = name;
  return out;
}

std::string why_unsuited(const GpuModel& gpu, int driver, int cuda) {
  if (driver > 0 && driver / 1000 < cuda / 1000) {
    return fmt::format("the driver is for CUDA {}, this torch for {}", release_of(driver),
                       release_of(cuda));
  }
  const int capability = 10 * gpu.major + gpu.minor, least = cuda >= 13000 ? 75 : 50;
  if (capability >= least) return "";
  return fmt::format("the {} has compute capability {}.{}, and torch for CUDA {} begins at {}.{}",
                     gpu.name, gpu.major, gpu.minor, release_of(cuda), least / 10, least % 10);
}

c10::DeviceType gpu_type() { return stand_in().type; }

void use_as_gpus(c10::DeviceType type, int count, const CudaFunctions* functions) {
  stand_in() = {type, count, functions};
  use_gpu_kernels(functions->kernels());
}

int usable_gpus() { return gpus().count; }

std::string why_no_gpu() { return gpus().why; }

}  // namespace lockstep
