#include "dist/collectives/world.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <thread>

#include "base/descriptor.h"
#include "dist/collectives/fingerprint.h"
#include "dist/rank/network.h"
#include "support/expect_says.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using std::chrono::seconds;
using Strings = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

TEST(World, OfOneRankOpensNoConnectionAndChangesNothing) {
  LaunchEnvironment alone;  // port 0: an attempt to connect would fail
  World world(alone, {});
  torch::Tensor tensor = torch::tensor({1.0f, 2.0f});
  double figures[] = {3, 4};
  world.all_reduce_sum(tensor);
  world.all_reduce_sum(figures);
  world.all_reduce_max(figures);
  world.broadcast(tensor, 0);
  world.barrier();
  EXPECT_EQ(tensor[1].item<float>(), 2);
  EXPECT_EQ(figures[1], 4);
  EXPECT_EQ(world.all_gather_strings("mine"), (Strings{"mine"}));
  EXPECT_TRUE(world.is_leader());
  EXPECT_EQ(world.last_operation().sequence, 0u);
}

TEST(World, SumsTakesMaximaAndBroadcasts) {
  expect_all_well(run_ranks(3, [](World& world) {
    int r = world.rank();
    for (auto type : {torch::kFloat32, torch::kFloat64, torch::kBFloat16, torch::kInt64}) {
      torch::Tensor tensor = torch::full({5, 7}, r + 1, type);
      world.all_reduce_sum(tensor);
      EXPECT_TRUE(torch::equal(tensor, torch::full({5, 7}, 6, type))) << type;
    }
    double figures[] = {1.0 + r, 0.1};
    world.all_reduce_sum(figures);
    EXPECT_EQ(figures[0], 6);
    EXPECT_NEAR(figures[1], 0.3, 1e-15);
    double largest[] = {-1.0 - r, 0.5 * r};
    world.all_reduce_max(largest);
    EXPECT_EQ(largest[0], -1);
    EXPECT_EQ(largest[1], 1);
    torch::Tensor weights = torch::full({1000}, r);
    world.broadcast(weights, 2);
    EXPECT_EQ(weights.min().item<float>(), 2);
    EXPECT_EQ(world.size(), 3);
    EXPECT_EQ(world.is_leader(), r == 0);
  }));
}

TEST(World, ReducesASliceInPlaceAndLeavesItsNeighbours) {
  expect_all_well(run_ranks(2, [](World& world) {
    torch::Tensor flat = torch::ones({100});
    world.all_reduce_sum(flat.narrow(0, 10, 50));
    EXPECT_EQ(flat.sum().item<float>(), 150);
    EXPECT_EQ(flat[9].item<float>(), 1);
    EXPECT_EQ(flat[60].item<float>(), 1);
  }));
}

TEST(World, SumsBf16OfTwoRanksWithOneRounding) {
  expect_all_well(run_ranks(2, [](World& world) {
    torch::manual_seed(3);
    torch::Tensor parts = torch::randn({2, 1001}).to(torch::kBFloat16);
    torch::Tensor mine = parts[world.rank()].clone();
    world.all_reduce_sum(mine);
    torch::Tensor exact = parts[0].to(torch::kFloat32) + parts[1].to(torch::kFloat32);
    EXPECT_TRUE(torch::equal(mine, exact.to(torch::kBFloat16)));
  }));
}

TEST(World, GathersStringsOfDifferentLengths) {
  expect_all_well(run_ranks(3, [](World& world) {
    std::string mine(static_cast<std::size_t>(world.rank() * 3), 'x');
    if (world.rank() == 2) mine += std::string("\0ä", 3);
    auto all = world.all_gather_strings(mine);
    EXPECT_EQ(all, (Strings{"", "xxx", "xxxxxx" + std::string("\0ä", 3)}));
    EXPECT_EQ(world.all_gather_strings(""), (Strings{"", "", ""}));
  }));
}

TEST(World, TellsTheRanksWhoseNumbersDiffer) {
  expect_all_well(run_ranks(3, [](World& world) {
    std::vector<uint64_t> values{1, uint64_t(world.rank() / 2)};
    EXPECT_EQ(world.all_equal(values), std::vector<int>{2});
    EXPECT_TRUE(world.all_equal(std::vector<uint64_t>{7}).empty());
  }));
}

TEST(World, CountsAndNamesItsOperations) {
  expect_all_well(run_ranks(2, [](World& world) {
    uint64_t before = world.last_operation().sequence;
    torch::Tensor tensor = torch::ones({3});
    world.start_all_reduce_sum(tensor, "gradient bucket 5")();
    EXPECT_EQ(world.last_operation().sequence, before + 1);
    EXPECT_EQ(world.last_operation().name, "gradient bucket 5");
  }));
}

TEST(World, SurvivorsOfAKilledRankSayWhatFailed) {
  auto start = Clock::now();
  auto results = run_ranks(3, [](World& world) {
    torch::Tensor tensor = torch::ones({1000});
    for (int step = 0; step < 200; ++step) {
      if (world.rank() == 1 && step == 20) raise(SIGKILL);
      world.all_reduce_sum(tensor);
    }
  });
  EXPECT_EQ(results[1].signal, SIGKILL);
  for (int rank : {0, 2}) {
    EXPECT_EQ(results[rank].exit_code, kExitMachine) << results[rank].text;
    expect_says(results[rank].text, "lost rank 1 on ");
    expect_says(results[rank].text, ": its process ended");
    expect_says(results[rank].text,
                "while: rank " + std::to_string(rank) + " of 3 in all_reduce_s");
  }
  EXPECT_LT(Clock::now() - start, seconds{8});  // at once, not after the timeout of 10 s
}

TEST(World, ASilentRankEndsTheOthersAfterTheTimeout) {
  RanksOptions options;
  options.world.timeout = seconds{1};
  auto results = run_ranks(
      2,
      [](World& world) {
        if (world.rank() == 1) std::this_thread::sleep_for(seconds{3});
        world.barrier();
      },
      options);
  EXPECT_EQ(results[0].exit_code, kExitMachine);
  expect_says(results[0].text, "rank 1 on ");
  expect_says(results[0].text, " hangs: others wait for it for ");
  EXPECT_EQ(results[1].exit_code, kExitMachine);
}

TEST(World, AnExceptionWithOperationsUnderWayDoesNotHang) {
  RanksOptions options;
  options.world.timeout = seconds{60};
  auto start = Clock::now();
  auto results = run_ranks(
      2,
      [](World& world) {
        torch::Tensor tensor = torch::ones({100000});
        if (world.rank() == 0) {
          Completion unfinished = world.start_all_reduce_sum(tensor, "bucket 0");
          std::this_thread::sleep_for(std::chrono::milliseconds{100});
          throw DivergedError("the loss is not a number");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{300});
        world.barrier();
      },
      options);
  EXPECT_EQ(results[0].exit_code, kExitDiverged) << results[0].text;
  EXPECT_EQ(results[1].exit_code, kExitMachine) << results[1].text;
  EXPECT_LT(Clock::now() - start, seconds{15});
}

TEST(World, NamesRanksThatNeverAppear) {
  auto results = run_processes(3, [](const LaunchEnvironment& environment) {
    if (environment.rank == 2) return;  // dies at once
    World world(environment, {seconds{5}, seconds{2}, "cpu"});
  });
  EXPECT_EQ(results[0].exit_code, kExitMachine);
  expect_says(results[0].text, "not all of 3 ranks appeared: missing 2");
}

TEST(World, SaysWhenRankZeroIsNotThere) {
  auto results = run_processes(2, [](const LaunchEnvironment& environment) {
    if (environment.rank == 0) return;
    World world(environment, {seconds{5}, seconds{2}, "cpu"});
  });
  EXPECT_EQ(results[1].exit_code, kExitMachine);
  expect_says(results[1].text, "rank 1 cannot reach rank 0 at 127.0.0.1:");
}

TEST(World, SaysThatThePortIsTaken) {
  int taken = listen_on("127.0.0.1", 0);
  auto results = run_processes(1, [taken](LaunchEnvironment environment) {
    environment.size = environment.local_size = 2;
    environment.store_descriptor = -1;
    environment.master_port = port_of(taken);
    World world(environment, {seconds{5}, seconds{5}, "cpu"});
  });
  std::string place = "127.0.0.1:" + std::to_string(port_of(taken));
  close(taken);
  EXPECT_EQ(results[0].exit_code, kExitMachine);
  expect_says(results[0].text, "cannot listen on " + place);
  expect_says(results[0].text, "Address already in use");
  expect_says(results[0].text, "MASTER_PORT");
}

TEST(World, RefusesLoopbackForSeveralMachinesAndUnknownDevices) {
  LaunchEnvironment environment;
  environment.size = 2;
  environment.local_size = 1;
  environment.master_address = "127.0.1.1";
  EXPECT_THROW(World(environment, {}), MachineError);
  WorldOptions options;
  options.device = "cdua";
  EXPECT_THROW(World(LaunchEnvironment{}, options), ConfigError);
  environment.rank = 2;
  EXPECT_THROW(World(environment, {}), ConfigError);
}

TEST(Network, FindsTheLocalEndOfARoute) {
  LocalAddress local = local_address_towards("127.0.0.1");
  EXPECT_TRUE(local.loopback);
  EXPECT_EQ(local.address, "127.0.0.1");
  EXPECT_THROW(local_address_towards("no-such-host.invalid"), MachineError);
}

// TCP_RTO_MAX_MS is 44 in linux/tcp.h; kernels before 6.15 do not know it.
TEST(Network, SocketsAreToldNotToWaitLongAfterACut) {
  const Descriptor listener(listen_on("127.0.0.1", 0));
  const Descriptor socket(connect_to("127.0.0.1", port_of(listener.get()), 5, "us"));
  try_again_soon(socket.get());
  int longest = 0;
  socklen_t size = sizeof longest;
  const bool known = ::getsockopt(socket.get(), IPPROTO_TCP, 44, &longest, &size) == 0;
  EXPECT_EQ(longest, known ? 1000 : 0);
}

TEST(Fingerprint, ChangesWithEveryBitItsPlaceAndTheLength) {
  std::vector<std::byte> bytes(200);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37);
  uint64_t all = fingerprint(bytes);
  EXPECT_EQ(fingerprint(bytes), all);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_NE(fingerprint(bytes), all) << bit;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
  std::swap(bytes[3], bytes[75]);
  EXPECT_NE(fingerprint(bytes), all);
  std::vector<std::byte> zeros(64);
  EXPECT_NE(fingerprint(std::span(zeros).first(10)), fingerprint(std::span(zeros).first(11)));
}

TEST(Fingerprint, OfATensorIsThatOfItsBytes) {
  torch::Tensor tensor = torch::arange(5000000, torch::kFloat32);  // more than one piece
  std::span bytes(static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes());
  EXPECT_EQ(fingerprint(tensor), fingerprint(bytes));
}

}  // namespace
}  // namespace lockstep
