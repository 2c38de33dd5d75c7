// Sizes are rounded up to classes, four to a power of two (at most a quarter more than asked). A
// class has its own lock and list, so threads meet only when they want the same size at the same
// time. New blocks are cut from arenas of 64 MB in huge pages; larger ones are mapped alone.
#include "kernels/cpu_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::size_t kUnit = 64;  // bytes: a cache line, and the alignment of tensors
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kArena = std::size_t{64} << 20;
constexpr std::size_t kOwnMapping = kArena / 4;  // blocks from this size on are mapped alone
constexpr std::size_t kClasses = 160;            // the last has 2^46 bytes
constexpr std::size_t kLargerClasses = 2;        // how many classes up a free block may come from
constexpr std::size_t kLargerFrom = 64 << 10;    // bytes: smaller blocks keep to their class

// Lies before every block, in a cache line of its own.
struct alignas(kUnit) Header {
  Header* next = nullptr;  // in the list of its class, while free
  std::size_t size_class = 0;
};
static_assert(sizeof(Header) == kUnit);

// 1, 2, 3, 4, then 5 6 7 8, 10 12 14 16, 20 24 28 32, ... units.
std::size_t class_of(std::size_t units) {
  if (units <= 4) return units - 1;
  const std::size_t exponent = static_cast<std::size_t>(std::bit_width(units - 1)) - 1;
  return 4 + (exponent - 2) * 4 + (((units - 1) >> (exponent - 2)) & 3);
}
std::size_t bytes_of(std::size_t size_class) {
  if (size_class < 4) return (size_class + 1) * kUnit;
  return ((size_class % 4 + 5) << (size_class / 4 - 1)) * kUnit;
}

// `bytes` of fresh zero pages at a multiple of a huge page.
std::byte* map_pages(std::size_t bytes) {
  const std::size_t wanted = bytes + kHugePage;
  void* start = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    throw MachineError("cannot allocate {} bytes of memory: {}", bytes, std::strerror(errno));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
  // What lies outside goes back; a failure would only leave address space reserved.
  if (aligned > address) munmap(start, aligned - address);
  const std::uintptr_t end = aligned + (bytes + 4095) / 4096 * 4096;
  if (address + wanted > end) munmap(reinterpret_cast<void*>(end), address + wanted - end);
  std::byte* pages = reinterpret_cast<std::byte*>(aligned);
  madvise(pages, bytes, MADV_HUGEPAGE);  // advice: kernels without huge pages refuse it
  return pages;
}

class CachingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = bytes == 0 ? nullptr : take(bytes);
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  AllocatorStatistics statistics() const {
    return {held_.load(), in_use_.load(), hits_.load(), misses_.load()};
  }

 private:
  struct alignas(kUnit) FreeList {
    std::mutex lock;
    Header* first = nullptr;
  };

  void* take(std::size_t bytes) {
    TORCH_CHECK(bytes < (std::size_t{1} << 45), "a tensor of ", bytes, " bytes");
    const std::size_t size_class = class_of((bytes + sizeof(Header) + kUnit - 1) / kUnit);
    Header* header = pop(size_class);
    // Fresh pages cost more than a block that is half again as large: batches differ in length.
    for (std::size_t larger = 1; header == nullptr && larger <= kLargerClasses; ++larger) {
      if (bytes >= kLargerFrom) header = pop(size_class + larger);
    }
    if (header != nullptr) {
      hits_.fetch_add(1, std::memory_order_relaxed);
    } else {
      header = make(size_class);
      misses_.fetch_add(1, std::memory_order_relaxed);
      held_.fetch_add(static_cast<int64_t>(bytes_of(size_class)), std::memory_order_relaxed);
    }
    in_use_.fetch_add(static_cast<int64_t>(bytes_of(header->size_class)),
                      std::memory_order_relaxed);
    return header + 1;
  }

  Header* pop(std::size_t size_class) {
    FreeList& list = lists_[size_class];
    std::lock_guard<std::mutex> guard(list.lock);
    Header* header = list.first;
    if (header != nullptr) list.first = header->next;
    return header;
  }

  static void release(void* data);

  void put(Header* header) {
    in_use_.fetch_sub(static_cast<int64_t>(bytes_of(header->size_class)),
                      std::memory_order_relaxed);
    FreeList& list = lists_[header->size_class];
    std::lock_guard<std::mutex> guard(list.lock);
    header->next = list.first;
    list.first = header;
  }

  Header* make(std::size_t size_class) {
    const std::size_t bytes = bytes_of(size_class);
    std::byte* memory = bytes >= kOwnMapping ? map_pages(bytes) : cut(bytes);
    Header* header = new (memory) Header;
    header->size_class = size_class;
    return header;
  }

  std::byte* cut(std::size_t bytes) {
    std::lock_guard<std::mutex> guard(arena_lock_);
    if (arena_left_ < bytes) {  // what is left stays unused, and untouched
      arena_ = map_pages(kArena);
      arena_left_ = kArena;
    }
    std::byte* memory = arena_;
    arena_ += bytes;
    arena_left_ -= bytes;
    return memory;
  }

  std::array<FreeList, kClasses> lists_;
  std::mutex arena_lock_;
  std::byte* arena_ = nullptr;
  std::size_t arena_left_ = 0;
  std::atomic<int64_t> held_{0}, in_use_{0}, hits_{0}, misses_{0};
};

// Never destroyed: tensors of static lifetime are freed after main().
CachingAllocator& allocator() {
  static CachingAllocator* instance = new CachingAllocator;
  return *instance;
}

void CachingAllocator::release(void* data) {
  if (data != nullptr) allocator().put(static_cast<Header*>(data) - 1);
}

}  // namespace

void use_caching_allocator() {
  static std::once_flag once;
  std::call_once(once, [] { c10::SetCPUAllocator(&allocator()); });
}

AllocatorStatistics allocator_statistics() { return allocator().statistics(); }

}  // namespace lockstep
