#include "arrays/cpu_allocator.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace lockstep {
namespace {

TEST(CachingAllocator, GivesFreedBlocksOutAgain) {
  use_caching_allocator();
  use_caching_allocator();  // the second call does nothing
  void* before = torch::empty({12345}).data_ptr();
  const AllocatorStatistics start = allocator_statistics();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(torch::empty({12345}).data_ptr(), before);
  const AllocatorStatistics end = allocator_statistics();
  EXPECT_EQ(end.hits - start.hits, 100);
  EXPECT_EQ(end.misses, start.misses);
  EXPECT_EQ(end.bytes_held, start.bytes_held);
  EXPECT_EQ(end.bytes_in_use, start.bytes_in_use);
}

TEST(CachingAllocator, AlignsAndNeverOverlapsBlocksOfAnySize) {
  use_caching_allocator();
  std::vector<torch::Tensor> tensors;
  for (int64_t bytes = 1; bytes < (int64_t{1} << 26); bytes = bytes * 3 / 2 + 1) {
    for (int64_t size : {bytes, bytes + 63}) {
      tensors.push_back(torch::empty({size}, torch::kUInt8));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensors.back().data_ptr()) % 64, 0u);
      tensors.back().fill_(static_cast<int64_t>(tensors.size() % 251));
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {  // nobody wrote into another's block
    const int64_t expected = static_cast<int64_t>((i + 1) % 251);
    EXPECT_TRUE((tensors[i] == expected).all().item<bool>()) << tensors[i].numel();
  }
  const AllocatorStatistics statistics = allocator_statistics();
  EXPECT_LE(statistics.bytes_in_use, statistics.bytes_held);
}

TEST(CachingAllocator, HoldsNoMoreThanTheLargestBatchWantsWhateverTheSizesAre) {
  use_caching_allocator();
  auto step = [](int64_t tokens) {  // what layers of a batch keep, freed in another order
    std::vector<torch::Tensor> kept;
    for (int64_t i = 0; i < 24; ++i) {
      kept.push_back(torch::empty({tokens * (i % 4 + 1) * 256}, torch::kBFloat16));
      kept.back().fill_(i);
    }
    for (int64_t i = 0; i < 24; ++i) {
      EXPECT_EQ(kept[static_cast<std::size_t>(i)][0].item<float>(), static_cast<float>(i));
      EXPECT_EQ(kept[static_cast<std::size_t>(i)][-1].item<float>(), static_cast<float>(i));
    }
    while (!kept.empty()) {
      std::swap(kept[kept.size() / 2], kept.back());
      kept.pop_back();
    }
  };
  step(2000);
  const int64_t held = allocator_statistics().bytes_held,
                used = allocator_statistics().bytes_in_use;
  for (int64_t i = 0; i < 200; ++i) step(1000 + i * 7919 % 1000);
  EXPECT_EQ(allocator_statistics().bytes_held, held);
  EXPECT_EQ(allocator_statistics().bytes_in_use, used);
}

TEST(CachingAllocator, TellsThePeakSinceItWasReset) {
  use_caching_allocator();
  reset_peak_bytes();
  const int64_t before = allocator_statistics().bytes_in_use;
  EXPECT_EQ(allocator_statistics().peak_bytes, before);
  { torch::Tensor large = torch::empty({1 << 20}); }
  const int64_t peak = allocator_statistics().peak_bytes;
  EXPECT_GE(peak, before + (4 << 20));
  EXPECT_LT(peak, before + (5 << 20));
  { torch::Tensor small = torch::empty({1 << 10}); }
  EXPECT_EQ(allocator_statistics().peak_bytes, peak);
  reset_peak_bytes();
  EXPECT_EQ(allocator_statistics().peak_bytes, allocator_statistics().bytes_in_use);
}

int64_t resident_bytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;  // the second number
  return pages * sysconf(_SC_PAGESIZE);
}

TEST(CachingAllocator, GivesFreePagesBackAndLeavesTheOthersAlone) {
  use_caching_allocator();
  std::vector<torch::Tensor> kept;
  {
    std::vector<torch::Tensor> gone;
    for (int i = 0; i < 8; ++i) {
      kept.push_back(torch::full({100000 + i}, i));
      gone.push_back(torch::full({5000000 + i}, -1.0));  // 20 MB
    }
  }
  const int64_t before = resident_bytes();
  give_back_free_pages();
  EXPECT_LT(resident_bytes(), before - 150'000'000);
  torch::Tensor again = torch::full({5000000}, 5.0);
  EXPECT_TRUE((again == 5.0).all().item<bool>());
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE((kept[static_cast<std::size_t>(i)] == i).all().item<bool>());
  }
}

TEST(CachingAllocator, EmptyTensorsNeedNoBlock) {
  use_caching_allocator();
  const AllocatorStatistics before = allocator_statistics();
  torch::Tensor empty = torch::empty({0});
  EXPECT_EQ(empty.numel(), 0);
  EXPECT_EQ(allocator_statistics().bytes_in_use, before.bytes_in_use);
}

TEST(CachingAllocator, ALimitRefusesWhatIsAboveItAndEndsWithItsBlock) {
  use_caching_allocator();
  const int64_t before = allocator_statistics().bytes_in_use;
  {
    const TensorLimit limit(before + 1'000'000);
    const torch::Tensor small = torch::empty({500'000}, torch::kUInt8);
    EXPECT_THROW(torch::empty({600'000}, torch::kUInt8), TensorMemoryError);
    EXPECT_NO_THROW(torch::empty({400'000}, torch::kUInt8));
  }
  EXPECT_NO_THROW(torch::empty({2'000'000}, torch::kUInt8));
  EXPECT_EQ(allocator_statistics().bytes_in_use, before);
}

TEST(CachingAllocator, TakesBlocksBackFromOtherThreads) {
  use_caching_allocator();
  const int64_t before = allocator_statistics().bytes_in_use;
  std::vector<torch::Tensor> handed(64);
  std::vector<std::thread> makers, users;
  for (int t = 0; t < 4; ++t) {
    makers.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) torch::empty({1 + (i * 37 + t) % 5000}).fill_(t);
      for (int i = 0; i < 16; ++i) {
        handed[static_cast<std::size_t>(t) * 16 + static_cast<std::size_t>(i)] =
            torch::full({1000 + i}, t * 16 + i);
      }
    });
  }
  for (std::thread& thread : makers) thread.join();
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    users.emplace_back([&, t] {
      for (int i = t; i < 64; i += 4) {
        torch::Tensor& tensor = handed[static_cast<std::size_t>(i)];
        if (!(tensor == i).all().item<bool>()) ++wrong;
        tensor = torch::Tensor();
      }
    });
  }
  for (std::thread& thread : users) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(allocator_statistics().bytes_in_use, before);
}

}  // namespace
}  // namespace lockstep
