#include "dist/collectives/operation_queue.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

TEST(OperationQueue, RunsInOrderOnAnotherThread) {
  OperationQueue queue;
  std::vector<int> order;
  std::thread::id runner;
  for (int i = 0; i < 100; ++i) {
    queue.add([&, i] {
      runner = std::this_thread::get_id();
      order.push_back(i);
    });
  }
  queue.drain();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  EXPECT_NE(runner, std::this_thread::get_id());
}

TEST(OperationQueue, HandsOnWhatAnOperationThrewAndGoesOn) {
  OperationQueue queue;
  auto failed = queue.add([] { throw std::runtime_error("no"); });
  auto well = queue.add([] {});
  EXPECT_THROW(failed.get(), std::runtime_error);
  EXPECT_NO_THROW(well.get());
}

TEST(OperationQueue, DrainsUntilATimeAndDropsTheRestAtItsEnd) {
  std::promise<void> go;
  auto gone = go.get_future().share();
  std::shared_future<void> dropped;
  {
    OperationQueue queue;
    EXPECT_TRUE(queue.drain(milliseconds{0}));
    queue.add([gone] { gone.wait_for(std::chrono::seconds{5}); });
    dropped = queue.add([] { FAIL() << "must not run"; });
    EXPECT_FALSE(queue.drain(milliseconds{20}));
    std::thread later([&] {
      std::this_thread::sleep_for(milliseconds{50});
      go.set_value();
    });
    later.detach();
  }
  EXPECT_THROW(dropped.get(), std::future_error);
}

}  // namespace
}  // namespace lockstep
