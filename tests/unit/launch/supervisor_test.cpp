#include "launch/job/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "base/text.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Words = std::vector<std::string>;

// A job on hosts that are only words, at a time that only moves when told to.
class SupervisorTest : public ::testing::Test, public SupervisorActions {
 protected:
  void begin(int hosts, SupervisorOptions options = {}, int slots = 1) {
    std::vector<SupervisedHost> seats;
    for (int i = 0; i < hosts; ++i)
      seats.push_back({std::string(1, static_cast<char>('a' + i)), slots});
    options_ = options;
    supervisor_ = std::make_unique<Supervisor>(seats, options, *this);
    supervisor_->begin(now_);
  }
  void begin_running(int hosts, SupervisorOptions options = {}, int slots = 1) {
    begin(hosts, options, slots);
    for (int i = 0; i < hosts; ++i) ready(i);
    take();
  }
  void ready(int host) { supervisor_->host_ready(host, now_); }
  void lost(int host, bool final = false) {
    supervisor_->host_lost(host, MachineError("host {} is gone", host), final, now_);
  }
  void idle(int host) { supervisor_->host_idle(host, now_); }
  void rank_ends(int rank, int status, bool told = false) {
    supervisor_->rank_ended({rank, status, now_, told});
  }
  // All ranks that were told to stop did, after a checkpoint.
  void all_stop(int ranks, int hosts) {
    for (int i = 0; i < ranks; ++i) rank_ends(i, 143 << 8, true);
    for (int i = 0; i < hosts; ++i) idle(i);
  }
  void after(milliseconds time) {
    now_ += time;
    supervisor_->check_time(now_);
  }
  // What was done since it was last asked.
  Words take() { return std::exchange(done_, {}); }
  bool over() { return supervisor_->verdict().has_value(); }
  int exit_code() { return over() ? supervisor_->verdict()->exit_code : -1; }
  Words noted() { return std::exchange(events_, {}); }

  std::unique_ptr<Supervisor> supervisor_;
  Clock::time_point now_{std::chrono::hours(1)};
  SupervisorOptions options_;

 private:
  void connect(int host) override { done_.push_back(fmt::format("connect {}", host)); }
  void release(int host) override { done_.push_back(fmt::format("release {}", host)); }
  void start(const Attempt& attempt) override {
    Words hosts;
    for (int host : attempt.hosts) hosts.push_back(std::to_string(host));
    done_.push_back(
        fmt::format("start {}: {} ranks on {}", attempt.number, attempt.ranks, join(hosts, ",")));
  }
  void stop(milliseconds grace, bool tell) override {
    done_.push_back(fmt::format("stop {}{}", grace.count(), tell ? "" : " silently"));
  }
  void kill() override { done_.push_back("kill"); }
  void note(const LaunchEvent& event) override { events_.push_back(event.event); }
  Words done_, events_;
};

constexpr int kKilled = SIGKILL;
constexpr int exit_status(int code) { return code << 8; }

TEST(RestartDelay, GrowsFromNothingToAMinute) {
  std::vector<int64_t> delays;
  for (int failures = 1; failures <= 9; ++failures) {
    delays.push_back(restart_delay(failures).count() / 1000);
  }
  EXPECT_EQ(delays, (std::vector<int64_t>{0, 1, 2, 4, 8, 16, 32, 60, 60}));
  EXPECT_EQ(restart_delay(1000).count(), 60000);
}

TEST_F(SupervisorTest, StartsWhenAllHostsAreThere) {
  begin(2, {}, 2);
  EXPECT_EQ(take(), (Words{"connect 0", "connect 1"}));
  ready(1);
  EXPECT_EQ(take(), Words{});
  ready(0);
  EXPECT_EQ(take(), Words{"start 0: 4 ranks on 0,1"});
  EXPECT_EQ(supervisor_->host_of_rank(1), 0);
  EXPECT_EQ(supervisor_->host_of_rank(2), 1);
  EXPECT_EQ(supervisor_->name_of_rank(3), "rank 3 on b");
}

TEST_F(SupervisorTest, DoesNotWaitForAHostThatIsKnownToBeAwayButTakesItLater) {
  options_.min_hosts = 1;
  supervisor_ = std::make_unique<Supervisor>(std::vector<SupervisedHost>{{"a", 1}, {"b", 2, true}},
                                             options_, *this);
  supervisor_->begin(now_);
  EXPECT_EQ(take(), Words{"connect 0"});
  ready(0);
  EXPECT_EQ(take(), Words{"start 0: 1 ranks on 0"});
  after(options_.poll);
  EXPECT_EQ(take(), Words{"connect 1"});
  ready(1);
  EXPECT_EQ(take(), Words{"stop 10000"});
  all_stop(1, 1);
  EXPECT_EQ(take(), Words{"start 1: 3 ranks on 0,1"});
}

TEST_F(SupervisorTest, EndsWellWhenAllRanksDo) {
  begin_running(2);
  rank_ends(0, 0);
  idle(0);
  EXPECT_FALSE(over());
  rank_ends(1, 0);
  idle(1);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(SupervisorTest, StopsAllAtAFailureAndEndsWithItsCode) {
  begin_running(2);
  rank_ends(1, exit_status(3));
  EXPECT_EQ(take(), Words{"stop 10000"}) << "without restarts survivors have the whole grace time";
  rank_ends(0, exit_status(143), true);
  idle(1);
  EXPECT_FALSE(over());
  idle(0);
  EXPECT_EQ(exit_code(), 3);
  EXPECT_EQ(supervisor_->verdict()->failure->rank, 1);
}

TEST_F(SupervisorTest, WaitsForTheCauseOfALostPeer) {
  begin_running(2);
  rank_ends(0, exit_status(kExitMachine));
  EXPECT_EQ(take(), Words{});
  after(milliseconds(100));
  rank_ends(1, kKilled);
  EXPECT_EQ(take().size(), 1u);
  idle(0);
  idle(1);
  EXPECT_EQ(supervisor_->verdict()->failure->rank, 1);
}

TEST_F(SupervisorTest, StartsAgainAtOnceThenLaterAndLater) {
  begin_running(1, {.restarts = 3}, 2);
  for (int i = 0; i < 3; ++i) {
    rank_ends(1, kKilled);
    EXPECT_EQ(take(), Words{"stop 3000"}) << "no checkpoint can be made any more";
    rank_ends(0, exit_status(kExitMachine));
    idle(0);
    after(milliseconds(i == 0 ? 0 : 1000 * i - 1));
    if (i > 0) {
      EXPECT_EQ(take(), Words{}) << i;
      after(milliseconds(1));
    }
    EXPECT_EQ(take(), Words{fmt::format("start {}: 2 ranks on 0", i + 1)});
  }
  rank_ends(1, kKilled);
  EXPECT_EQ(take(), Words{"stop 10000"});
  rank_ends(0, exit_status(kExitMachine));
  idle(0);
  EXPECT_EQ(exit_code(), kExitMachine);
}

TEST_F(SupervisorTest, CountsFailuresAnewAfterProgress) {
  begin_running(1, {.restarts = 1});
  for (int i = 0; i < 5; ++i) {
    rank_ends(0, kKilled);
    idle(0);
    EXPECT_FALSE(over());
    supervisor_->progressed();
  }
  EXPECT_EQ(supervisor_->attempt().number, 5);
  rank_ends(0, kKilled);
  idle(0);
  rank_ends(0, kKilled);
  idle(0);
  EXPECT_TRUE(over());
}

TEST_F(SupervisorTest, DoesNotRepeatWhatWouldFailAgain) {
  for (int code : {kExitConfig, kExitData, kExitDiverged}) {
    begin_running(1, {.restarts = 3});
    rank_ends(0, exit_status(code));
    idle(0);
    EXPECT_EQ(exit_code(), code);
  }
  begin_running(1, {.restarts = 3});
  rank_ends(0, exit_status(kExitInternal));
  idle(0);
  EXPECT_FALSE(over());
}

TEST_F(SupervisorTest, WaitsForALostHostAndGoesOnWithAll) {
  begin_running(2, {.restarts = 3});
  lost(1);
  EXPECT_EQ(take(), Words{"stop 3000"});
  rank_ends(0, exit_status(kExitMachine));
  idle(0);
  EXPECT_EQ(take(), Words{"connect 1"});
  lost(1);
  after(seconds(1));
  EXPECT_EQ(take(), Words{"connect 1"});
  ready(1);
  EXPECT_EQ(take(), Words{"start 1: 2 ranks on 0,1"});
}

TEST_F(SupervisorTest, EndsWhenAHostStaysAwayAndNoFewerWillDo) {
  begin_running(2, {.restarts = 3});
  lost(1);
  idle(0);
  for (int i = 0; i < 70 && !over(); ++i) {
    after(seconds(1));
    if (!over()) lost(1);
  }
  EXPECT_EQ(exit_code(), kExitMachine);
  EXPECT_NE(supervisor_->verdict()->loss->describe().find("1 of 2 hosts not there: b"),
            std::string::npos);
}

TEST_F(SupervisorTest, GoesOnWithFewerHostsAndBackToAllWhenOneReturns) {
  begin_running(2, {.restarts = 3, .min_hosts = 1});
  lost(1);
  idle(0);
  take();
  for (int i = 0; i < 60; ++i) {
    after(seconds(1));
    lost(1);
  }
  Words done = take();
  EXPECT_EQ(done.back(), "start 1: 1 ranks on 0");
  after(seconds(9));
  EXPECT_EQ(take(), Words{});
  after(seconds(1));
  EXPECT_EQ(take(), Words{"connect 1"}) << "looked for after 10 s";
  lost(1);
  after(seconds(10));
  EXPECT_EQ(take(), Words{});
  after(seconds(10));
  EXPECT_EQ(take(), Words{"connect 1"}) << "and less and less often";
  noted();
  ready(1);
  EXPECT_EQ(take(), Words{"stop 10000"}) << "with time for a checkpoint";
  EXPECT_EQ(noted(), Words{"host_back"});
  all_stop(1, 1);
  EXPECT_EQ(take(), Words{"start 2: 2 ranks on 0,1"});
}

TEST_F(SupervisorTest, ReportsAllHostsThatAreNotThereAtTheFirstStart) {
  begin(3, {.restarts = 3});
  lost(1);
  EXPECT_FALSE(over()) << "the others may yet say what is wrong with them";
  ready(0);
  lost(2, true);
  EXPECT_EQ(exit_code(), kExitMachine);
  std::string text = supervisor_->verdict()->loss->describe();
  EXPECT_NE(text.find("2 of 3 hosts not there: b, c"), std::string::npos) << text;
  EXPECT_NE(text.find("host 1 is gone"), std::string::npos) << text;
  EXPECT_NE(text.find("host 2 is gone"), std::string::npos) << text;
}

TEST_F(SupervisorTest, SaysHowLongHostsHadThatSaidNothingAtAll) {
  begin(2);
  after(options_.host_timeout);
  ASSERT_EQ(exit_code(), kExitMachine);
  std::string text = supervisor_->verdict()->loss->describe();
  EXPECT_NE(text.find("2 of 2 hosts not there: a, b"), std::string::npos) << text;
  EXPECT_NE(text.find("because: no answer within 1 m"), std::string::npos) << text;
}

TEST_F(SupervisorTest, NamesTheOnlyHostThatSaidNothing) {
  begin(2);
  ready(0);
  after(options_.host_timeout);
  ASSERT_EQ(exit_code(), kExitMachine);
  EXPECT_EQ(supervisor_->verdict()->loss->describe(), "host b: no answer within 1 m 00 s");
}

TEST_F(SupervisorTest, ReportsAHostThatIsNotThereWhoeverAnswersLast) {
  begin(2);
  lost(0);
  EXPECT_FALSE(over());
  ready(1);
  EXPECT_EQ(exit_code(), kExitMachine);
}

TEST_F(SupervisorTest, StopsAfterACheckpointWhenInterrupted) {
  begin_running(2, {.restarts = 3});
  supervisor_->interrupted(SIGTERM, now_);
  EXPECT_EQ(take(), Words{"stop 10000"});
  all_stop(2, 2);
  EXPECT_EQ(exit_code(), 143);
  EXPECT_EQ(supervisor_->verdict()->interrupted_by, SIGTERM);
}

TEST_F(SupervisorTest, KillsAtTheSecondInterrupt) {
  begin_running(1);
  supervisor_->interrupted(SIGINT, now_);
  supervisor_->interrupted(SIGINT, now_);
  EXPECT_EQ(take(), (Words{"stop 10000", "kill"}));
}

TEST_F(SupervisorTest, EndsAtOnceWhenInterruptedBetweenAttempts) {
  begin(2);
  ready(0);
  supervisor_->interrupted(SIGINT, now_);
  EXPECT_EQ(exit_code(), 130);
}

TEST_F(SupervisorTest, DoesNotStartAgainAfterAnInterruptDuringAFailure) {
  begin_running(1, {.restarts = 3}, 2);
  rank_ends(0, kKilled);
  supervisor_->interrupted(SIGINT, now_);
  rank_ends(1, exit_status(143), true);
  idle(0);
  EXPECT_EQ(exit_code(), 130);
}

TEST_F(SupervisorTest, GoesOnWithoutAMachineThatWasAskedToGo) {
  begin_running(2, {.restarts = 3, .min_hosts = 1});
  supervisor_->host_told(1, SIGTERM, now_);
  EXPECT_EQ(take(), Words{"stop 10000 silently"}) << "they know; a second SIGTERM would kill";
  all_stop(2, 2);
  EXPECT_EQ(take(), (Words{"release 1", "start 1: 1 ranks on 0"}));
  after(seconds(149));
  EXPECT_EQ(take(), Words{}) << "it may answer until it is gone";
  after(seconds(1));
  EXPECT_EQ(take(), Words{"connect 1"});
}

TEST_F(SupervisorTest, EndsWhenAMachineIsAskedToGoAndNoFewerWillDo) {
  begin_running(2, {.restarts = 3});
  supervisor_->host_told(1, SIGTERM, now_);
  all_stop(2, 2);
  EXPECT_EQ(exit_code(), 143);
}

HostNotice notice_in(double seconds_left) {
  return {.cloud = "aws", .action = "terminate", .seconds_left = seconds_left};
}

TEST_F(SupervisorTest, StopsWithinWhatANoticeLeaves) {
  begin_running(3, {.restarts = 3, .min_hosts = 1});
  noted();
  supervisor_->host_noticed(1, notice_in(120), now_);
  EXPECT_EQ(take(), Words{"stop 110000"}) << "ten seconds are for what follows the checkpoint";
  supervisor_->host_noticed(2, notice_in(30), now_);
  EXPECT_EQ(take(), Words{"stop 25000 silently"}) << "the earlier of two machines counts";
  EXPECT_EQ(noted(), (Words{"notice", "notice"}));
  all_stop(3, 3);
  EXPECT_EQ(take(), (Words{"release 1", "release 2", "start 1: 1 ranks on 0"}));
}

TEST_F(SupervisorTest, UsesAMachineAgainWhoseNoticeIsWithdrawn) {
  begin_running(2, {.restarts = 3, .min_hosts = 1});
  noted();
  supervisor_->host_noticed(1, notice_in(120), now_);
  supervisor_->host_noticed(1, {.cloud = "aws", .action = "terminate", .withdrawn = true}, now_);
  EXPECT_EQ(noted(), (Words{"notice", "notice_withdrawn"}));
  take();
  all_stop(2, 2);
  EXPECT_EQ(take(), Words{"start 1: 2 ranks on 0,1"});
}

TEST_F(SupervisorTest, EndsWithANoticeWhenNoFewerWillDo) {
  begin_running(2, {.restarts = 3});
  supervisor_->host_noticed(0, notice_in(120), now_);
  all_stop(2, 2);
  EXPECT_EQ(exit_code(), 143);
}

TEST(GraceBefore, LeavesAMarginButAlwaysASecond) {
  EXPECT_EQ(grace_before(120), milliseconds(110000));
  EXPECT_EQ(grace_before(30), milliseconds(25000));
  EXPECT_EQ(grace_before(3), milliseconds(2000));
  EXPECT_EQ(grace_before(0), milliseconds(1000));
}

TEST_F(SupervisorTest, TellsWhenItWantsToBeAsked) {
  begin_running(1, {.restarts = 2});
  EXPECT_FALSE(supervisor_->next_deadline().has_value());
  rank_ends(0, exit_status(kExitMachine));
  EXPECT_EQ(*supervisor_->next_deadline() - now_, milliseconds(500));
  after(milliseconds(500));
  idle(0);
  rank_ends(0, kKilled);
  idle(0);
  EXPECT_EQ(*supervisor_->next_deadline() - now_, seconds(1));
}

TEST_F(SupervisorTest, ABudgetThatRunsOutEndsTheJobAfterACheckpoint) {
  begin_running(2);
  supervisor_->run_out(seconds(40), now_);
  EXPECT_EQ(take(), Words{"stop 40000"});
  supervisor_->run_out(seconds(40), now_);
  EXPECT_EQ(take(), Words{});
  all_stop(2, 2);
  EXPECT_EQ(exit_code(), kExitBudget);
  EXPECT_TRUE(supervisor_->verdict()->run_out);
}

TEST_F(SupervisorTest, ABudgetThatRunsOutEndsTheWaitForHostsAndEveryRestart) {
  begin(2);
  supervisor_->run_out(seconds(10), now_);
  EXPECT_EQ(exit_code(), kExitBudget);
  begin_running(2, {.restarts = 3});
  rank_ends(0, kKilled);
  supervisor_->run_out(seconds(10), now_);
  rank_ends(1, 143 << 8, true);
  idle(0);
  idle(1);
  EXPECT_EQ(exit_code(), kExitBudget);
}

TEST_F(SupervisorTest, ARunThatEndsWhileItsBudgetRunsOutHasEndedWell) {
  begin_running(1);
  supervisor_->run_out(seconds(10), now_);
  rank_ends(0, 0);
  idle(0);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(SupervisorTest, WaitsForAnotherMachineInThePlaceOfALostOne) {
  begin_running(2, {.restarts = 3, .replacement_wait = seconds(600)});
  EXPECT_TRUE(supervisor_->missing().empty());
  lost(1);
  EXPECT_EQ(take(), Words{"stop 3000"});
  EXPECT_EQ(supervisor_->missing(), std::vector<int>{1});
  rank_ends(0, 143 << 8, true);
  idle(0);
  lost(1);
  after(seconds(61));
  lost(1);
  after(seconds(1));
  EXPECT_FALSE(over()) << "it would have ended here without replacements";
  const Words events = noted();
  EXPECT_EQ(std::count(events.begin(), events.end(), "waiting"), 1);
  supervisor_->replace(0, "x", now_);  // is there, so nothing changes
  EXPECT_EQ(noted(), Words{});
  lost(1);
  take();
  supervisor_->replace(1, "c", now_);
  EXPECT_EQ(noted(), Words{"host_replaced"});
  after(milliseconds(0));
  EXPECT_EQ(take(), Words{"connect 1"});
  ready(1);
  EXPECT_EQ(take(), Words{"start 1: 2 ranks on 0,1"});
  EXPECT_EQ(supervisor_->name_of_rank(1), "rank 1 on c");
}

TEST_F(SupervisorTest, EndsWhenNoOtherMachineComesInTime) {
  begin_running(2, {.restarts = 3, .replacement_wait = seconds(100)});
  lost(1);
  rank_ends(0, 143 << 8, true);
  idle(0);
  for (int i = 0; i < 200 && !over(); ++i) {
    lost(1);
    after(seconds(1));
  }
  EXPECT_EQ(exit_code(), kExitMachine);
  EXPECT_TRUE(supervisor_->missing().empty());
}

TEST_F(SupervisorTest, AReclaimedMachineIsLeftAloneWhileAnotherIsAwaited) {
  begin_running(2, {.replacement_wait = seconds(600)});
  supervisor_->host_told(1, SIGTERM, now_);
  all_stop(2, 2);
  EXPECT_FALSE(over());
  EXPECT_EQ(take(), (Words{"stop 10000 silently", "release 1"})) << "and it is not connected again";
  after(seconds(20));
  EXPECT_EQ(take(), Words{});
  supervisor_->replace(1, "c", now_);
  after(milliseconds(0));
  EXPECT_EQ(take(), Words{"connect 1"});
  ready(1);
  EXPECT_EQ(take(), Words{"start 1: 2 ranks on 0,1"});
}

TEST_F(SupervisorTest, AReplacementJoinsARunThatGoesOnWithFewer) {
  begin_running(3, {.restarts = 3, .min_hosts = 2, .replacement_wait = seconds(600)});
  lost(2);
  rank_ends(0, 143 << 8, true);
  rank_ends(1, 143 << 8, true);
  idle(0);
  idle(1);
  lost(2);
  after(seconds(61));
  take();
  EXPECT_EQ(supervisor_->attempt().hosts, (std::vector<int>{0, 1}));
  lost(2);
  supervisor_->replace(2, "d", now_);
  after(milliseconds(0));
  EXPECT_EQ(take(), Words{"connect 2"});
  ready(2);
  EXPECT_EQ(take(), Words{"stop 10000"});
  all_stop(2, 2);
  EXPECT_EQ(take(), Words{"start 2: 3 ranks on 0,1,2"});
}

}  // namespace
}  // namespace lockstep
