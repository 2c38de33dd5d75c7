#include "nn/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <new>
#include <string_view>

#include "arrays/cpu_allocator.h"
#include "base/control_group.h"
#include "base/text.h"

namespace lockstep {

namespace {

c10::CachingAllocator::Stat tensors_on(c10::Device device) {
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats
      .allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

}  // namespace

void DeviceMemory::reset_peak() const {
  if (device_.is_cpu()) return reset_peak_bytes();
  c10::getDeviceAllocator(device_.type())->resetPeakStats(device_.index());
}

void DeviceMemory::give_back() const {
  if (device_.is_cpu()) return give_back_free_pages();
  c10::getDeviceAllocator(device_.type())->emptyCache();
}

int64_t DeviceMemory::peak() const {
  return device_.is_cpu() ? allocator_statistics().peak_bytes : tensors_on(device_).peak;
}

int64_t DeviceMemory::in_use() const {
  return device_.is_cpu() ? allocator_statistics().bytes_in_use : tensors_on(device_).current;
}

int64_t DeviceMemory::available() const {
  if (!device_.is_cpu()) {
    auto* allocator = c10::getDeviceAllocator(device_.type());
    return static_cast<int64_t>(allocator->getMemoryInfo(device_.index()).first);
  }
  const UsableMemory memory = usable_memory();
  if (memory.free <= 0) throw MachineError("/proc/meminfo does not tell MemAvailable");
  const AllocatorStatistics own = allocator_statistics();
  return memory.free + own.bytes_held - own.bytes_in_use;
}

namespace {

// Memory that libtorch's allocator did not ask for: what CUDA's libraries take for themselves.
bool lacks_memory_of_cuda(const std::exception& error) {
  constexpr int kMemoryAllocation = 2;  // cudaErrorMemoryAllocation
  const auto* of_device = dynamic_cast<const c10::AcceleratorError*>(&error);
  if (of_device != nullptr) return of_device->get_error_code() == kMemoryAllocation;
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr &&
         std::string_view(of_torch->what_without_backtrace()).find("_STATUS_ALLOC_FAILED") !=
             std::string_view::npos;
}

}  // namespace

bool is_lack_of_memory(const std::exception& error) {
  return dynamic_cast<const TensorMemoryError*>(&error) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         dynamic_cast<const std::bad_alloc*>(&error) != nullptr || lacks_memory_of_cuda(error);
}

std::string allocator_text(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  if (of_torch == nullptr) return error.what();
  std::string_view text = of_torch->what_without_backtrace();
  text = trim(text.substr(0, text.find("Of the allocated memory")));
  return std::string(text.substr(0, text.find('\n')));
}

MachineError lack_of_memory(const std::exception& error) {
  MachineError out("not enough memory");
  out.set_cause(allocator_text(error));
  out.set_advice(
      "smaller batches (training: training.fit_memory = true finds their size; evaluation: "
      "batch.evaluation_images, batch.evaluation_tokens or decoding.batch_tokens), a smaller "
      "model, "
      "or more memory");
  return out;
}

MachineError lack_of_memory(const std::exception& error, c10::Device device,
                            const std::string& what, int64_t bytes) {
  const DeviceMemory memory(device);
  memory.give_back();
  MachineError out("{} has not the memory for {}: {}, and there are {}", device.str(), what,
                   short_bytes(static_cast<double>(bytes)),
                   short_bytes(static_cast<double>(memory.in_use() + memory.available())));
  out.set_cause(allocator_text(error));
  return out;
}

}  // namespace lockstep
