// Ranks that end, stop, hang or disagree in real processes: who is named, by whom, and when.
#include "dist/liveness/heartbeat.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/descriptor.h"
#include "dist/liveness/heartbeat_links.h"
#include "dist/rank/network.h"
#include "support/expect_says.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Over shared memory, over the network, and both.
enum class Path { kMemory, kNetwork, kMachines };
void PrintTo(Path path, std::ostream* out) {
  *out << std::array{"memory", "network", "machines"}[static_cast<std::size_t>(path)];
}

class LostRank : public ::testing::TestWithParam<Path> {
 protected:
  static RanksOptions options() {
    RanksOptions out;
    out.world.timeout = seconds{60};
    out.world.lost_seconds = 1.2;
    out.world.shared_memory = GetParam() != Path::kNetwork;
    if (GetParam() == Path::kMachines) out.machines = {"a", "a", "b"};
    return out;
  }
};

// Three ranks sum until `victim` does `what` in its 20th turn. The ranks that are left end the
// victim, which cannot end by itself.
std::vector<RankResult> run_with_victim(int victim, const RanksOptions& options,
                                        const std::function<void()>& what) {
  return run_ranks(
      3,
      [&](World& world) {
        int process = std::stoi(world.all_gather_strings(std::to_string(getpid()))[victim]);
        torch::Tensor tensor = torch::ones({1000});
        world.progress().begin_step(41, 2);
        world.progress().enter(Phase::kBackward);
        Clock::time_point start;
        try {
          for (int turn = 0; turn < 100; ++turn) {
            start = Clock::now();
            if (turn == 20) std::this_thread::sleep_for(milliseconds{600});  // a beat or two
            if (world.rank() == victim && turn == 20) what();
            world.all_reduce_sum(tensor);
          }
        } catch (const Error&) {
          if (world.rank() != victim) {
            std::printf("rank %d: %.2f s to detection\n", world.rank(), seconds_since(start) - 0.6);
            std::this_thread::sleep_for(milliseconds{700});  // the other one shall see for itself
            kill(process, SIGKILL);
          }
          throw;
        }
      },
      options);
}

TEST_P(LostRank, ThatWasKilledIsNamedByAllWithinASecond) {
  for (int victim : {1, 0}) {
    auto start = Clock::now();
    auto results = run_with_victim(victim, options(), [] { raise(SIGKILL); });
    EXPECT_LT(seconds_since(start), 4);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(results[rank].exit_code, kExitMachine) << results[rank].text;
      expect_says(results[rank].text, fmt::format("lost rank {} on ", victim));
      expect_says(results[rank].text, ": its process ended");
      expect_says(results[rank].text, "last seen in step 41, backward");
      expect_says(results[rank].text, "all_reduce_sum, 1,000 x fp32 (operation ");
    }
  }
}

// Once through memory, once through the network.
TEST_P(LostRank, ThatStoodStillIsNamedByAllAfterTheSilenceThatIsAllowed) {
  if (GetParam() == Path::kMachines) return;
  for (int victim : {1, 0}) {
    auto start = Clock::now();
    auto results = run_with_victim(victim, options(), [] { raise(SIGSTOP); });
    EXPECT_LT(seconds_since(start), 6);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(results[rank].exit_code, kExitMachine) << results[rank].text;
      expect_says(results[rank].text, fmt::format("lost rank {} on ", victim));
      expect_says(results[rank].text, ": no sign of life for ");
      expect_says(results[rank].text, "last seen in step 41, backward");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, LostRank,
                         testing::Values(Path::kMemory, Path::kNetwork, Path::kMachines));

TEST(Heartbeat, ARankThatFailsForItsOwnReasonIsQuotedByTheOthers) {
  RanksOptions options;
  options.world.timeout = seconds{60};
  auto start = Clock::now();
  auto results = run_ranks(
      3,
      [](World& world) {
        if (world.rank() == 1) {
          world.heartbeat().report_failure("corpus.bin: is damaged\n  try: prepare it anew");
          throw DataError("corpus.bin: is damaged");
        }
        world.barrier();
      },
      options);
  EXPECT_EQ(results[1].exit_code, kExitData);
  for (int rank : {0, 2}) {
    EXPECT_EQ(results[rank].exit_code, kExitMachine);
    expect_says(results[rank].text, " failed: corpus.bin: is damaged\n");
  }
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Heartbeat, ALivingRankThatHangsOutsideOfOperationsIsNamedAtTheTimeout) {
  RanksOptions options;
  options.world.timeout = seconds{2};
  options.world.lost_seconds = 1;  // it beats: this is no reason
  options.world.shared_memory = false;
  auto results = run_ranks(
      3,
      [](World& world) {
        if (world.rank() == 2) std::this_thread::sleep_for(milliseconds{3500});
        world.barrier();
      },
      options);
  for (int rank : {0, 1}) {
    EXPECT_EQ(results[rank].exit_code, kExitMachine) << results[rank].text;
    expect_says(results[rank].text, "rank 2 on ");
    expect_says(results[rank].text, " hangs: others wait for it for ");
    expect_says(results[rank].text, "in barrier (operation ");
  }
}

TEST(Heartbeat, ARankStuckInItsOwnWorkIsEndedAfterTheVerdict) {
  auto start = Clock::now();
  auto results = run_ranks(2, [](World& world) {
    if (world.rank() == 1) raise(SIGKILL);
    world.heartbeat().when_stuck([](const RankVerdict& verdict) {
      std::fprintf(stderr, "last words: %s\n", verdict.headline.c_str());
    });
    std::this_thread::sleep_for(seconds{20});  // a long evaluation
  });
  EXPECT_EQ(results[0].exit_code, kExitMachine);
  EXPECT_LT(seconds_since(start), 8);
}

TEST(Heartbeat, DifferentOperationsAreNamedOverTheNetworkToo) {
  RanksOptions options;
  options.world.timeout = seconds{30};
  options.world.shared_memory = false;
  auto start = Clock::now();
  auto results = run_ranks(
      3,
      [](World& world) {
        world.barrier();
        if (world.rank() == 2) {
          world.barrier();
        } else {
          torch::Tensor tensor = torch::ones({10});
          world.start_all_reduce_sum(tensor, "gradient bucket 0")();
        }
        std::this_thread::sleep_for(seconds{2});
        world.barrier();
      },
      options);
  for (const RankResult& r : results) {
    EXPECT_EQ(r.exit_code, kExitMachine) << r.text;
    expect_says(r.text, "the ranks issue different operations: rank 2 on ");
    expect_says(r.text, " issued barrier (operation ");
    expect_says(r.text, " issued gradient bucket 0, 10 x fp32 (operation ");
  }
  EXPECT_LT(seconds_since(start), 10);
}

TEST(Heartbeat, TellsRankZeroStatusUsageAndClockOfEveryRank) {
  expect_all_well(run_ranks(2, [](World& world) {
    world.progress().begin_step(7 + world.rank(), 0);
    std::this_thread::sleep_for(milliseconds{1600});
    std::vector<RankSeen> ranks = world.heartbeat().ranks();
    ASSERT_EQ(ranks.size(), 2u);
    for (int r : {0, 1}) {
      EXPECT_EQ(ranks[r].presence, Presence::kHere);
      EXPECT_EQ(ranks[r].status.progress.step, 7 + r);
      EXPECT_STREQ(ranks[r].identity.address, "127.0.0.1");
      EXPECT_GT(ranks[r].status.usage.resident_bytes, 1000000);
    }
    if (world.is_leader()) {
      EXPECT_EQ(ranks[0].identity.process, getpid());
      EXPECT_GT(ranks[1].status.round_trip_seconds, 0);
      EXPECT_LT(std::abs(ranks[1].status.clock_offset_seconds), 0.05);  // one machine, one clock
    }
    world.barrier();
  }));
}

// A leader of two ranks, and what it knows of them after some turns.
class HeartbeatDoor : public ::testing::Test {
 protected:
  void turn(int turns) {
    for (int i = 0; i < turns; ++i) {
      leader_.serve(ranks_, Clock::now());
      std::this_thread::sleep_for(milliseconds{5});
    }
  }
  void expect_welcome() {
    FollowerLink friendly(leader_.meeting(), secret_, identity_);
    for (int i = 0; i < 100 && ranks_[1].presence == Presence::kAbsent; ++i) turn(1);
    EXPECT_EQ(ranks_[1].presence, Presence::kHere);
    EXPECT_STREQ(ranks_[1].identity.address, "127.0.0.1");
    std::vector<RankSeen> theirs(2);
    friendly.serve(theirs, Clock::now());
    EXPECT_EQ(theirs[0].presence, Presence::kAbsent) << "not closed";
  }
  BeatGreeting greeting() const {
    return {
        .introduction = Visitor(secret_, meeting_place_of(leader_.meeting()).token).introduction(),
        .layout = wire_layout(),
        .identity = identity_};
  }
  BeatSocket connection() const {
    return BeatSocket(
        connect_to("127.0.0.1", meeting_place_of(leader_.meeting()).port, 1, "the heartbeat"));
  }

  const Token secret_ = random_token();
  LeaderLinks leader_{2, "127.0.0.1", secret_};
  std::vector<RankSeen> ranks_ = std::vector<RankSeen>(2);
  RankIdentity identity_ = own_identity(1);
};

TEST_F(HeartbeatDoor, StrangersAreNotLetIn) {
  MeetingPlace place = meeting_place_of(leader_.meeting());
  place.token = {};
  FollowerLink other_token(to_text(place), secret_, identity_);
  FollowerLink other_secret(leader_.meeting(), random_token(), identity_);
  const Descriptor raw(connect_to("127.0.0.1", place.port, 1, "the heartbeat"));
  ASSERT_GT(send(raw.get(), std::string(100000, 'x').data(), 100000, MSG_NOSIGNAL), 0);
  turn(20);
  EXPECT_EQ(ranks_[1].presence, Presence::kAbsent);
  expect_welcome();
}

// Rank 1 is gone, and another takes its place: who heard its greeting on the wire cannot be it.
TEST_F(HeartbeatDoor, AGreetingIsTakenOnce) {
  const std::string overheard = BeatWriter().add(greeting()).body();
  {
    BeatSocket first = connection();
    first.send(BeatType::kGreeting, overheard);
    turn(20);
    EXPECT_EQ(ranks_[1].presence, Presence::kHere);
  }
  turn(2);
  EXPECT_EQ(ranks_[1].presence, Presence::kClosed);
  ranks_[1].presence = Presence::kAbsent;
  BeatSocket again = connection();
  again.send(BeatType::kGreeting, overheard);
  turn(20);
  EXPECT_EQ(ranks_[1].presence, Presence::kAbsent);
  expect_welcome();
}

TEST_F(HeartbeatDoor, AnImpostorIsNotBelieved) {
  const Descriptor listener(listen_on("127.0.0.1", 0));
  FollowerLink link(to_text({"127.0.0.1", port_of(listener.get()), random_token()}), secret_,
                    identity_);
  BeatSocket theirs(accept(listener.get(), nullptr, nullptr));
  RankVerdict verdict{.ranks = {0}, .headline = "stop", .detail = "", .advice = ""};
  theirs.send(BeatType::kWelcome, BeatWriter().add(Proof{}).body());
  theirs.send(BeatType::kVerdict, verdict_frame(verdict));
  std::this_thread::sleep_for(milliseconds{50});
  std::vector<RankSeen> ranks(2);
  EXPECT_FALSE(link.serve(ranks, Clock::now()));
  EXPECT_EQ(ranks[0].presence, Presence::kClosed);
}

}  // namespace
}  // namespace lockstep
