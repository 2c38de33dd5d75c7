// libtorch's at::parallel_for is a serial loop in programs compiled without OpenMP, and says
// nothing.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

namespace lockstep {
namespace {

TEST(ParallelFor, RunsOnSeveralThreads) {
  at::set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  at::parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 2u);
}

}  // namespace
}  // namespace lockstep
