// What becomes of shared memory when processes fail, and what stays behind: nothing.
#include "dist/collectives/local_group.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "base/file.h"
#include "dist/collectives/machines.h"
#include "dist/rank/machine_key.h"
#include "support/expect_says.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

bool memory_is_mapped() {
  return read_file("/proc/self/maps").find("memfd:lockstep") != std::string::npos;
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    auto target = std::filesystem::read_symlink(entry.path(), ignored);
    out.insert(entry.path().string() + " -> " + target.string());
  }
  return out;
}

bool holds_memory_file() {
  for (const std::string& file : files_in("/proc/self/fd")) {
    if (file.find("memfd:lockstep") != std::string::npos) return true;
  }
  return false;
}

TEST(LocalGroup, IsUsedByRanksOfOneMachineAndLeavesNothingOpen) {
  auto before = files_in("/dev/shm");
  expect_all_well(run_processes(2, [](const LaunchEnvironment& environment) {
    {
      World world(environment, {seconds{10}, seconds{10}});
      EXPECT_TRUE(memory_is_mapped());
      EXPECT_FALSE(holds_memory_file());
      world.barrier();
    }
    EXPECT_FALSE(memory_is_mapped());
  }));
  EXPECT_EQ(files_in("/dev/shm"), before);
}

TEST(LocalGroup, IsNotMadeWhereItIsNotWanted) {
  RanksOptions options;
  options.world.shared_memory = false;
  expect_all_well(run_ranks(
      2, [](World&) { EXPECT_FALSE(memory_is_mapped()); }, options));
}

TEST(LocalGroup, AllRanksUseTheNetworkWhenOneCannotMakeTheMemory) {
  expect_all_well(run_processes(2, [](const LaunchEnvironment& environment) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit small{4096, RLIM_INFINITY};
    if (environment.rank == 0) setrlimit(RLIMIT_FSIZE, &small);
    World world(environment, {seconds{10}, seconds{10}});
    EXPECT_FALSE(memory_is_mapped());
    torch::Tensor tensor = torch::ones({1000});
    world.all_reduce_sum(tensor);
    EXPECT_EQ(tensor.sum().item<float>(), 2000);
  }));
}

TEST(LocalGroup, NamesTheRankThatDiedWithinASecond) {
  auto results = run_ranks(3, [](World& world) {
    torch::Tensor tensor = torch::ones({200000});
    Completion last;
    Clock::time_point killed;
    try {
      for (int step = 0; step < 20; ++step) {
        if (world.rank() == 1 && step == 10) raise(SIGKILL);
        killed = Clock::now();  // or a little later than that
        last = world.start_all_reduce_sum(tensor, "bucket 7");
        last();
      }
    } catch (const Error&) {
      EXPECT_LT(Clock::now() - killed, seconds{1});
      throw;
    }
  });
  EXPECT_EQ(results[1].signal, SIGKILL);
  for (int rank : {0, 2}) {
    EXPECT_EQ(results[rank].exit_code, kExitMachine) << results[rank].text;
    expect_says(results[rank].text, "lost rank 1 on ");
    expect_says(results[rank].text, "of 3 in bucket 7 (operation ");
  }
}

TEST(LocalGroup, NamesTheRankThatHangs) {
  RanksOptions options;
  options.world.timeout = seconds{1};
  auto results = run_ranks(
      3,
      [](World& world) {
        if (world.rank() == 2) std::this_thread::sleep_for(seconds{2});
        torch::Tensor tensor = torch::ones({10});
        world.all_reduce_sum(tensor);
      },
      options);
  for (int rank : {0, 1, 2}) {
    EXPECT_EQ(results[rank].exit_code, kExitMachine) << results[rank].text;
    expect_says(results[rank].text, "rank 2 on ");
    expect_says(results[rank].text, " hangs: others wait for it for ");
  }
}

TEST(LocalGroup, SaysThatARankLeft) {
  auto results = run_ranks(2, [](World& world) {
    if (world.rank() == 0) throw DivergedError("the loss is not a number");
    world.barrier();
  });
  EXPECT_EQ(results[0].exit_code, kExitDiverged);
  EXPECT_EQ(results[1].exit_code, kExitMachine);
  expect_says(results[1].text, " failed: it ended with an error");
}

TEST(LocalGroup, NoticesThatRanksAreAtDifferentOperations) {
  auto results = run_ranks(2, [](World& world) {
    torch::Tensor tensor = torch::ones({10 + world.rank()});
    world.all_reduce_sum(tensor);
  });
  for (const RankResult& r : results) {
    EXPECT_EQ(r.exit_code, kExitMachine);
    expect_says(r.text, "the ranks issue different operations: rank 0 on ");
    expect_says(r.text, "issued all_reduce_sum, 11 x fp32 (operation ");
  }
}

TEST(LocalGroup, AFailureOnOneMachineReachesTheOthers) {
  RanksOptions options;
  options.machines = {"a", "a", "b", "b"};
  auto start = Clock::now();
  auto results = run_ranks(
      4,
      [](World& world) {
        torch::Tensor tensor = torch::ones({1000});
        for (int step = 0; step < 200; ++step) {
          if (world.rank() == 1 && step == 20) raise(SIGKILL);
          world.all_reduce_sum(tensor);
        }
      },
      options);
  EXPECT_EQ(results[1].signal, SIGKILL);
  for (int rank : {0, 2, 3}) {
    EXPECT_EQ(results[rank].exit_code, kExitMachine) << results[rank].text;
  }
  for (int rank : {0, 2, 3}) expect_says(results[rank].text, "lost rank 1 on ");
  EXPECT_LT(Clock::now() - start, seconds{8});
}

TEST(SharedMemory, IsOpenedThroughTheProcessThatMadeIt) {
  SharedMemory made = SharedMemory::create(10000);
  SharedMemory opened = SharedMemory::attach(getpid(), made.descriptor(), 10000);
  EXPECT_EQ(opened.data()[9999], std::byte{0});
  made.data()[9999] = std::byte{5};
  EXPECT_EQ(opened.data()[9999], std::byte{5});
  EXPECT_THROW(SharedMemory::attach(getpid(), made.descriptor(), 20000), MachineError);
  int closed = made.descriptor();
  made.close_descriptor();
  EXPECT_THROW(SharedMemory::attach(getpid(), closed, 10000), MachineError);
}

TEST(ProcessHandle, KnowsWhenAProcessHasEndedBeforeItIsCollected) {
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ProcessHandle handle(child);
  EXPECT_TRUE(handle.alive());
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, child, &info, WEXITED | WNOWAIT);  // ended, still a zombie
  EXPECT_FALSE(handle.alive());
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(handle.alive());
  EXPECT_THROW(ProcessHandle{child}, MachineError);
}

TEST(Machines, AreGroupedByTheirKeysInTheOrderOfTheirFirstRanks) {
  Machines machines = group_by_machine({"b", "a", "b", "c"}, 2);
  EXPECT_EQ(machines.ranks, (std::vector<std::vector<int>>{{0, 2}, {1}, {3}}));
  EXPECT_EQ(machines.neighbours(), (std::vector<int>{0, 2}));
  EXPECT_TRUE(machines.shared());
  EXPECT_FALSE(machines.one());
  EXPECT_FALSE(group_by_machine({"a", "b"}, 0).shared());
  EXPECT_TRUE(group_by_machine({"a", "a"}, 1).one());
  EXPECT_EQ(machine_key(), machine_key());
  EXPECT_FALSE(machine_key().empty());
}

}  // namespace
}  // namespace lockstep
