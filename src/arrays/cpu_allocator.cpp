// Implements the caching allocator for CPU tensors. Small requests are rounded up to size classes,
// four to a power of two (at most a quarter more than asked). A class has its own lock and list, so
// threads meet only when they want the same size at the same time. Large blocks come from one
// best-fit heap that merges neighbouring free blocks: batches differ in length, and a list for
// every size would keep the most blocks of that size that were ever in use. All memory is cut from
// arenas in huge pages.
#include "arrays/cpu_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::size_t kUnit = 64;  // bytes: a cache line, and the alignment of tensors
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kArena = std::size_t{64} << 20;
constexpr std::size_t kLarge = std::size_t{256} << 10;  // requests from here on go to the heap
constexpr std::size_t kPage = 4096;                     // large blocks are multiples of it
constexpr std::size_t kSmallestRest = kLarge / 4;       // a smaller rest is not split off
constexpr std::size_t kClasses = 80;                    // the last class has 2^26 bytes
constexpr std::size_t kInHeap = kClasses;

// A header lies before every block, in a cache line of its own.
struct alignas(kUnit) Header {
  std::size_t size_class = 0;  // or kInHeap
  std::size_t size = 0;        // bytes, this header included
  Header* next = nullptr;      // next in the list of the class, while free
  // For a block of the heap: its neighbours in the arena.
  Header* before = nullptr;
  Header* after = nullptr;
  bool free = false;
};
static_assert(sizeof(Header) == kUnit);

// Size classes in units: 1, 2, 3, 4, then 5 6 7 8, 10 12 14 16, 20 24 28 32, ...
std::size_t class_of(std::size_t units) {
  if (units <= 4) return units - 1;
  const std::size_t exponent = static_cast<std::size_t>(std::bit_width(units - 1)) - 1;
  return 4 + (exponent - 2) * 4 + (((units - 1) >> (exponent - 2)) & 3);
}
std::size_t bytes_of(std::size_t size_class) {
  if (size_class < 4) return (size_class + 1) * kUnit;
  return ((size_class % 4 + 5) << (size_class / 4 - 1)) * kUnit;
}

thread_local int64_t thread_limit = 0;  // of TensorLimit

// Returns `bytes`, a multiple of huge pages, of fresh zero pages, aligned to one.
std::byte* map_pages(std::size_t bytes) {
  const std::size_t wanted = bytes + kHugePage;
  void* start = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    throw TensorMemoryError("cannot allocate {} bytes of memory: {}", bytes, std::strerror(errno));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
  // What lies outside the aligned range is given back; a failure would only leave
  // address space reserved.
  if (aligned > address) munmap(start, aligned - address);
  const std::uintptr_t end = aligned + bytes;
  if (address + wanted > end) munmap(reinterpret_cast<void*>(end), address + wanted - end);
  std::byte* pages = reinterpret_cast<std::byte*>(aligned);
  madvise(pages, bytes, MADV_HUGEPAGE);  // advice: kernels without huge pages refuse it
  return pages;
}

// A best-fit heap over arenas; among blocks of equal size the lowest address is taken.
class Heap {
 public:
  // Returns a block of at least `size` bytes; `grown` receives the bytes of a new arena, or 0.
  Header* take(std::size_t size, std::size_t& grown) {
    std::lock_guard<std::mutex> guard(lock_);
    grown = 0;
    auto found = free_.lower_bound({size, nullptr});
    if (found == free_.end()) {
      grown = std::max(kArena, (size + kHugePage - 1) / kHugePage * kHugePage);
      Header* arena = new (map_pages(grown)) Header;
      arena->size_class = kInHeap;
      arena->size = grown;
      add(arena);
      found = free_.lower_bound({size, nullptr});
    }
    Header* block = found->second;
    remove(block);
    if (block->size - size >= kSmallestRest) split(block, size);
    return block;
  }

  void put(Header* block) {
    std::lock_guard<std::mutex> guard(lock_);
    if (block->after != nullptr && block->after->free) join_with_next(block);
    if (block->before != nullptr && block->before->free) {
      block = block->before;
      remove(block);
      merge(block);
    }
    add(block);
  }

  void give_back_free_pages() {
    // Some systems of aarch64 have pages of 64 KB, and would take the rest of one as well.
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    std::lock_guard<std::mutex> guard(lock_);
    for (const auto& [size, block] : free_) {
      // The header and every page that is shared with a neighbour are spared.
      const auto start = reinterpret_cast<std::uintptr_t>(block + 1);
      const std::uintptr_t begin = (start + page - 1) / page * page;
      const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(block) + size) / page * page;
      if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
  }

 private:
  void add(Header* block) {
    block->free = true;
    free_.insert({block->size, block});
  }
  void remove(Header* block) {
    block->free = false;
    free_.erase({block->size, block});
  }
  void split(Header* block, std::size_t size) {
    Header* rest = new (reinterpret_cast<std::byte*>(block) + size) Header;
    rest->size_class = kInHeap;
    rest->size = block->size - size;
    rest->before = block;
    rest->after = block->after;
    if (rest->after != nullptr) rest->after->before = rest;
    block->after = rest;
    block->size = size;
    add(rest);
  }
  void join_with_next(Header* block) {
    remove(block->after);
    merge(block);
  }
  // REQUIRES: neither of the two blocks is in the list of free blocks.
  static void merge(Header* block) {
    Header* gone = block->after;
    block->size += gone->size;
    block->after = gone->after;
    if (block->after != nullptr) block->after->before = block;
  }

  std::mutex lock_;
  std::set<std::pair<std::size_t, Header*>> free_;
};

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
    return {held_.load(), in_use_.load(), peak_.load(), hits_.load(), misses_.load()};
  }
  void reset_peak() { peak_ = in_use_.load(); }
  void give_back_free_pages() { heap_.give_back_free_pages(); }

 private:
  struct alignas(kUnit) FreeList {
    std::mutex lock;
    Header* first = nullptr;
  };

  void* take(std::size_t bytes) {
    TORCH_CHECK(bytes < (std::size_t{1} << 46), "a tensor of ", bytes, " bytes");
    const std::size_t size = bytes + sizeof(Header);
    if (thread_limit > 0 &&
        in_use_.load(std::memory_order_relaxed) + static_cast<int64_t>(size) > thread_limit) {
      throw TensorMemoryError("a tensor of {} bytes more is above the limit of {} bytes", bytes,
                              thread_limit);
    }
    std::size_t grown = 0;
    Header* header = size < kLarge ? take_small(size, grown)
                                   : heap_.take((size + kPage - 1) / kPage * kPage, grown);
    (grown == 0 ? hits_ : misses_).fetch_add(1, std::memory_order_relaxed);
    held_.fetch_add(static_cast<int64_t>(grown), std::memory_order_relaxed);
    const auto taken = static_cast<int64_t>(header->size);
    const int64_t in_use = in_use_.fetch_add(taken, std::memory_order_relaxed) + taken;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (in_use > peak && !peak_.compare_exchange_weak(peak, in_use, std::memory_order_relaxed)) {
    }
    return header + 1;
  }

  Header* take_small(std::size_t size, std::size_t& grown) {
    const std::size_t size_class = class_of((size + kUnit - 1) / kUnit);
    {
      FreeList& list = lists_[size_class];
      std::lock_guard<std::mutex> guard(list.lock);
      if (Header* header = list.first) {
        list.first = header->next;
        return header;
      }
    }
    grown = bytes_of(size_class);
    Header* header = new (cut(grown)) Header;
    header->size_class = size_class;
    header->size = grown;
    return header;
  }

  static void release(void* data);

  void put(Header* header) {
    in_use_.fetch_sub(static_cast<int64_t>(header->size), std::memory_order_relaxed);
    if (header->size_class == kInHeap) {
      heap_.put(header);
      return;
    }
    FreeList& list = lists_[header->size_class];
    std::lock_guard<std::mutex> guard(list.lock);
    header->next = list.first;
    list.first = header;
  }

  std::byte* cut(std::size_t bytes) {
    std::lock_guard<std::mutex> guard(arena_lock_);
    if (arena_left_ < bytes) {  // the rest of the old arena stays unused and untouched
      arena_ = map_pages(kArena);
      arena_left_ = kArena;
    }
    std::byte* memory = arena_;
    arena_ += bytes;
    arena_left_ -= bytes;
    return memory;
  }

  Heap heap_;
  std::array<FreeList, kClasses> lists_;
  std::mutex arena_lock_;
  std::byte* arena_ = nullptr;
  std::size_t arena_left_ = 0;
  std::atomic<int64_t> held_{0}, in_use_{0}, peak_{0}, hits_{0}, misses_{0};
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
void reset_peak_bytes() { allocator().reset_peak(); }
void give_back_free_pages() { allocator().give_back_free_pages(); }

TensorLimit::TensorLimit(int64_t bytes) : before_(std::exchange(thread_limit, bytes)) {}
TensorLimit::~TensorLimit() { thread_limit = before_; }

}  // namespace lockstep
