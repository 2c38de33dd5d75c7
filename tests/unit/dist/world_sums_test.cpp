// Sums and gathers of a World on every path: shared memory, network, several machines.
#include <gtest/gtest.h>

#include <bit>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "dist/collectives/world.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

// Around one and several chunks of shared memory (512 KiB) for each width of element.
const std::vector<int64_t> kSizes{0, 1, 7, 16385, 65535, 65537, 131071, 131073, 262145, 600001};
const std::vector<torch::ScalarType> kTypes{torch::kFloat32, torch::kFloat64, torch::kFloat16,
                                            torch::kBFloat16, torch::kInt64};

// What a rank brings in: alike wherever it is computed.
torch::Tensor addend_of(int rank, int64_t numel, torch::ScalarType type) {
  torch::manual_seed(static_cast<uint64_t>(1000 * rank + numel));
  if (type == torch::kInt64) return torch::randint(-1000000, 1000000, {numel}, type);
  return torch::randn({numel}).to(type);
}

torch::ScalarType wide_of(torch::ScalarType type) {
  return type == torch::kFloat16 || type == torch::kBFloat16 ? torch::kFloat32 : type;
}

// Of the ranks [first, first + ranks), in pairs of neighbours.
torch::Tensor wide_sum(int first, int ranks, int64_t numel, torch::ScalarType type) {
  if (ranks == 1) return addend_of(first, numel, type).to(wide_of(type));
  const int half = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
  return wide_sum(first, half, numel, type) + wide_sum(first + half, ranks - half, numel, type);
}

// As kernel_table.h says, rounded once.
torch::Tensor sum_in_pairs(int ranks, int64_t numel, torch::ScalarType type) {
  return wide_sum(0, ranks, numel, type).to(type);
}

class SumsOnOneMachine : public ::testing::TestWithParam<int> {};

TEST_P(SumsOnOneMachine, AreTakenInPairsOfNeighbours) {
  const int ranks = GetParam();
  expect_all_well(run_ranks(ranks, [ranks](World& world) {
    for (torch::ScalarType type : kTypes) {
      for (int64_t numel : kSizes) {
        torch::Tensor mine = addend_of(world.rank(), numel, type);
        world.all_reduce_sum(mine);
        EXPECT_TRUE(torch::equal(mine, sum_in_pairs(ranks, numel, type))) << type << " " << numel;
      }
    }
  }));
}

TEST_P(SumsOnOneMachine, DoNotDependOnTheCuts) {
  const int ranks = GetParam();
  expect_all_well(run_ranks(ranks, [ranks](World& world) {
    constexpr int64_t kNumel = 600001;
    torch::Tensor mine = addend_of(world.rank(), kNumel, torch::kFloat32);
    std::vector<Completion> running;
    for (int64_t first = 0, length = 1; first < kNumel; first += length, length = length * 3 + 1) {
      int64_t numel = std::min(length, kNumel - first);
      running.push_back(world.start_all_reduce_sum(mine.narrow(0, first, numel), "slice"));
    }
    for (const Completion& completion : running) completion();
    EXPECT_TRUE(torch::equal(mine, sum_in_pairs(ranks, kNumel, torch::kFloat32)));
  }));
}

INSTANTIATE_TEST_SUITE_P(Ranks, SumsOnOneMachine, testing::Values(2, 3, 4));

// Sizes on both sides of where the mesh goes from whole arrays to slices (256 KiB).
TEST(WorldSums, OverTheNetworkAreTheSameAsOnOneMachine) {
  for (int ranks : {2, 3, 4}) {
    RanksOptions options;
    options.world.shared_memory = false;
    options.world.streams = ranks - 1;
    auto body = [ranks](World& world) {
      for (torch::ScalarType type : kTypes) {
        for (int64_t numel : {0, 1, 7, 131073, 600001}) {
          torch::Tensor mine = addend_of(world.rank(), numel, type);
          world.all_reduce_sum(mine);
          EXPECT_TRUE(torch::equal(mine, sum_in_pairs(ranks, numel, type))) << type << " " << numel;
        }
      }
    };
    expect_all_well(run_ranks(ranks, body, options));
  }
}

TEST(WorldSums, OverTheNetworkDoNotDependOnTheCutsAndMayFinishInAnyOrder) {
  RanksOptions options;
  options.world.shared_memory = false;
  auto body = [](World& world) {
    constexpr int64_t kNumel = 900001;
    torch::Tensor mine = addend_of(world.rank(), kNumel, torch::kFloat32);
    std::vector<Completion> running;
    for (int64_t first = 0, length = 1; first < kNumel; first += length, length = length * 3 + 1) {
      int64_t numel = std::min(length, kNumel - first);
      running.push_back(world.start_all_reduce_sum(mine.narrow(0, first, numel), "slice"));
    }
    double figures[] = {1.0 * world.rank()};
    Completion last = world.start_all_reduce_sum(figures, "figures");
    last();
    EXPECT_EQ(figures[0], 3);
    for (const Completion& completion : running) completion();
    EXPECT_TRUE(torch::equal(mine, sum_in_pairs(3, kNumel, torch::kFloat32)));
  };
  expect_all_well(run_ranks(3, body, options));
}

TEST(WorldSums, NameTheRankThatWasLost) {
  RanksOptions options;
  options.world.shared_memory = false;
  auto results = run_ranks(
      2,
      [](World& world) {
        torch::Tensor tensor = torch::ones({1000});
        world.all_reduce_sum(tensor);
        if (world.rank() == 1) raise(SIGKILL);
        world.all_reduce_sum(tensor);
      },
      options);
  EXPECT_EQ(results[0].exit_code, kExitMachine);
  EXPECT_NE(results[0].text.find("lost rank 1 on "), std::string::npos) << results[0].text;
}

TEST(WorldSums, NameTheRankThatIsLate) {
  RanksOptions options;
  options.world.shared_memory = false;
  options.world.timeout = std::chrono::seconds{1};
  auto results = run_ranks(
      2,
      [](World& world) {
        torch::Tensor tensor = torch::ones({1000});
        if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds{3});
        world.all_reduce_sum(tensor);
      },
      options);
  EXPECT_EQ(results[0].exit_code, kExitMachine);
  EXPECT_NE(results[0].text.find("rank 1 on "), std::string::npos) << results[0].text;
}

TEST(WorldSums, OnAMachineAloneLeaveTheOthersOut) {
  RanksOptions options;
  options.machines = {"a", "b", "a", "b"};
  auto body = [](World& world) {
    EXPECT_EQ(world.neighbours(), (std::vector<int>{world.rank() % 2, world.rank() % 2 + 2}));
    torch::Tensor mine = torch::full({1000}, world.rank());
    world.start_all_reduce_sum(mine, "bucket", Reach::kMachine)();
    EXPECT_EQ(mine.max().item<float>(), 2 + 2 * (world.rank() % 2));
    double figures[] = {1};
    world.start_all_reduce_sum(figures, "figures", Reach::kMachine)();
    EXPECT_EQ(figures[0], 2);
    world.start_all_reduce_sum(figures, "figures", Reach::kAlone)();
    EXPECT_EQ(figures[0], 2);
    torch::Tensor moved = torch::full({3}, world.rank());
    world.transfer(moved, 3, 0);
    EXPECT_EQ(moved[0].item<float>(), world.rank() == 0 ? 3 : world.rank());
  };
  expect_all_well(run_ranks(4, body, options));
}

TEST(WorldSums, ManyQueuedAndImmediateOperationsKeepTheirOrder) {
  for (int ranks : {2, 3}) {
    expect_all_well(run_ranks(ranks, [ranks](World& world) {
      const int r = world.rank();
      for (int round = 0; round < 20; ++round) {
        std::vector<torch::Tensor> tensors;
        std::vector<Completion> running;
        for (int i = 0; i < 12; ++i) {
          tensors.push_back(addend_of(r, (i * 7919) % 190000 + 1, kTypes[i % kTypes.size()]));
          running.push_back(world.start_all_reduce_sum(tensors.back(), "bucket"));
          if (i % 5 == 4) {
            double figures[] = {1.0 * r, 2.0};
            world.all_reduce_sum(figures);
            EXPECT_EQ(figures[0], ranks * (ranks - 1) / 2);
            EXPECT_EQ(figures[1], 2 * ranks);
            world.barrier();
          }
        }
        auto strings = world.all_gather_strings(std::string(static_cast<std::size_t>(r), 'x'));
        EXPECT_EQ(strings.back().size(), static_cast<std::size_t>(ranks - 1));
        for (const Completion& completion : running) completion();
        if (round % 10 != 0) continue;
        for (const torch::Tensor& t : tensors) {
          EXPECT_TRUE(torch::equal(t, sum_in_pairs(ranks, t.numel(), t.scalar_type())));
        }
      }
    }));
  }
}

// Rank r's right elements are r + 1 times their index; the others hold rubbish.
void expect_gathered(World& world, const std::vector<int64_t>& cuts, torch::ScalarType type) {
  torch::Tensor flat = torch::full({cuts.back()}, -1, type);
  torch::Tensor expected = torch::empty({cuts.back()}, type);
  for (int r = 0; r < world.size(); ++r) {
    torch::Tensor slice = (torch::arange(cuts[r], cuts[r + 1]) * (r + 1)).to(type);
    expected.narrow(0, cuts[r], cuts[r + 1] - cuts[r]).copy_(slice);
    if (r != world.rank()) continue;
    flat.narrow(0, cuts[r], cuts[r + 1] - cuts[r]).copy_(slice);
  }
  world.all_gather_slices(flat, cuts);
  EXPECT_TRUE(torch::equal(flat, expected)) << type;
}

void expect_gathers(World& world) {
  for (torch::ScalarType type : {torch::kFloat32, torch::kBFloat16, torch::kUInt8}) {
    expect_gathered(world, {0, 5, 5, 600000}, type);
    expect_gathered(world, {0, 600000, 1200001, 1200002}, type);
    expect_gathered(world, {0, 0, 0, 1}, type);
    expect_gathered(world, {0, 0, 0, 0}, type);
  }
}

TEST(WorldSums, SlicesOfAllRanksAreGathered) {
  expect_all_well(run_ranks(3, expect_gathers));
  RanksOptions network;
  network.world.shared_memory = false;
  expect_all_well(run_ranks(3, expect_gathers, network));
}

TEST(WorldSums, CutsThatDoNotFitAreRefused) {
  World alone(LaunchEnvironment{}, {});
  torch::Tensor flat = torch::ones({3});
  alone.all_gather_slices(flat, std::vector<int64_t>{0, 3});
  EXPECT_ANY_THROW(alone.all_gather_slices(flat, std::vector<int64_t>{0, 2}));
  EXPECT_ANY_THROW(alone.all_gather_slices(flat, std::vector<int64_t>{0, 1, 3}));
}

// Small whole numbers: every order of summation gives the same.
void expect_exchanges(World& world) {
  const int n = world.size(), r = world.rank();
  for (torch::ScalarType type : kTypes) {
    for (int64_t numel : {int64_t{1}, int64_t{140001}}) {
      torch::Tensor index = torch::arange(numel) % 50;
      torch::Tensor mine = (index + r).to(type);
      Completion running = world.start_all_reduce_sum(mine, "bucket");
      torch::Tensor second = torch::full({numel}, r + 1, type);
      world.all_reduce_sum(second);
      running();
      EXPECT_TRUE(torch::equal(mine, (index * n + n * (n - 1) / 2).to(type))) << type;
      EXPECT_TRUE(torch::equal(second, torch::full({numel}, n * (n + 1) / 2, type))) << type;
    }
  }
  double figures[] = {1.0 + r};
  world.all_reduce_max(figures);
  EXPECT_EQ(figures[0], n);
  torch::Tensor weights = torch::full({1000}, r);
  world.broadcast(weights, n - 1);
  EXPECT_EQ(weights.min().item<float>(), n - 1);
  EXPECT_EQ(world.all_gather_strings(std::to_string(r)).back(), std::to_string(n - 1));
  EXPECT_TRUE(world.all_equal(std::vector<uint64_t>{7}).empty());
  world.barrier();
}

// Random numbers: whatever the order of summation, all ranks have the same bits.
void expect_equal_bits(World& world) {
  for (torch::ScalarType type : {torch::kFloat32, torch::kBFloat16}) {
    torch::Tensor mine = addend_of(world.rank(), 140001, type);
    world.all_reduce_sum(mine);
    torch::Tensor first = mine.clone();
    world.broadcast(first, 0);
    EXPECT_TRUE(torch::equal(first, mine));
    torch::Tensor error = (mine - sum_in_pairs(world.size(), 140001, type)).abs().max();
    EXPECT_LT(error.item<double>(), type == torch::kFloat32 ? 1e-5 : 0.1);
  }
}

TEST(WorldSums, GoByMachineWhenThereAreSeveral) {
  const std::vector<std::vector<std::string>> clusters{
      {"a", "a", "b", "b"}, {"a", "b", "b", "a"}, {"a", "a", "b"}, {"a", "b", "b"}, {"a", "b"}};
  for (const std::vector<std::string>& machines : clusters) {
    RanksOptions options;
    options.machines = machines;
    auto body = [](World& world) {
      expect_exchanges(world);
      expect_equal_bits(world);
      if (world.size() == 3) expect_gathers(world);
    };
    expect_all_well(run_ranks(static_cast<int>(machines.size()), body, options));
  }
}

TEST(WorldSums, GoOverTheNetworkWhereOneRankRefusesSharedMemory) {
  expect_all_well(run_processes(3, [](const LaunchEnvironment& environment) {
    WorldOptions options;
    options.shared_memory = environment.rank != 1;
    World world(environment, options);
    expect_exchanges(world);
    expect_equal_bits(world);
  }));
}

}  // namespace
}  // namespace lockstep
