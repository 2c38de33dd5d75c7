#include "dist/account/step_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using AccountTime = StepAccount::Time;

// A clock that the test sets: `ms` after a fixed beginning.
AccountTime after_ms(int ms) { return AccountTime{} + std::chrono::hours{1} + milliseconds{ms}; }

constexpr float kExact = 1e-6F;  // of seconds, as floats of times below a second

// From ms 0: data 10, other 1, forward 20, backward 40, wait 15, optimizer 8, other 6.
void take_step(StepAccount& account, int64_t step, int from = 0) {
  account.begin_step(step, after_ms(from));
  account.enter(Phase::kData, after_ms(from));
  account.enter(Phase::kOther, after_ms(from + 10));
  account.enter(Phase::kForward, after_ms(from + 11));
  account.enter(Phase::kBackward, after_ms(from + 31));
  account.enter(Phase::kWait, after_ms(from + 71));
  account.enter(Phase::kOptimizer, after_ms(from + 86));
  account.enter(Phase::kOther, after_ms(from + 94));
}

TEST(StepAccount, PhasesAddUpToTheStep) {
  StepAccount account;
  take_step(account, 7);
  account.begin_step(8, after_ms(100));
  const AccountedStep& step = account.ended();
  EXPECT_EQ(step.step, 7);
  EXPECT_NEAR(step.times.data, 0.010F, kExact);
  EXPECT_NEAR(step.times.forward, 0.020F, kExact);
  EXPECT_NEAR(step.times.backward, 0.040F, kExact);
  EXPECT_NEAR(step.times.wait, 0.015F, kExact);
  EXPECT_NEAR(step.times.optimizer, 0.008F, kExact);
  EXPECT_NEAR(step.times.other, 0.007F, kExact);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_NEAR(step.begin, now, 60);
}

// A device whose every mark comes 5 ms after the one before it, once the test lets it.
class SlowDevice final : public DeviceClock {
 public:
  struct State {
    int marks = 0, done = 0;  // marks that it has come to
  };
  explicit SlowDevice(State& state) : state_(state) {}

  Mark mark() override { return std::make_shared<int>(state_.marks++); }
  bool passed(const Mark& mark) const override { return number(mark) < state_.done; }
  double seconds_between(const Mark& first, const Mark& second) const override {
    state_.done = std::max(state_.done, number(second) + 1);
    return 0.005 * (number(second) - number(first));
  }

 private:
  static int number(const Mark& mark) { return *static_cast<const int*>(mark.get()); }
  State& state_;
};

TEST(StepAccount, PhasesOfADeviceHaveTheDevicesTimes) {
  StepAccount account;
  SlowDevice::State device;
  account.use(std::make_unique<SlowDevice>(device));
  account.begin_step(7, after_ms(0));
  account.enter(Phase::kForward, after_ms(1));   // mark 1
  account.enter(Phase::kBackward, after_ms(2));  // 2
  account.device_exchange([] { return 0.012; });
  account.device_exchange([] { return 0.003; });
  account.enter(Phase::kWait, after_ms(3));        // 3
  account.enter(Phase::kOptimizer, after_ms(50));  // 4
  EXPECT_EQ(account.so_far().backward, 0) << "the device has done nothing yet";
  device.done = 4;  // marks 0 to 3
  EXPECT_NEAR(account.so_far().forward, 0.005F, kExact);
  EXPECT_NEAR(account.so_far().backward, 0.005F, kExact);
  EXPECT_EQ(account.so_far().wait, 0) << "under way";
  EXPECT_NEAR(account.seconds_of_device_until(std::make_shared<int>(3)), 0.010, kExact);
  account.begin_step(8, after_ms(60));  // 5
  EXPECT_EQ(device.done, 4) << "nobody waits before the figures are asked for";
  const RankTimes times = account.ended().times;
  EXPECT_EQ(device.done, 6);
  EXPECT_EQ(account.ended().step, 7);
  for (const float seconds : {times.forward, times.backward, times.wait, times.optimizer}) {
    EXPECT_NEAR(seconds, 0.005F, kExact);
  }
  EXPECT_NEAR(times.hidden, 0.010F, kExact) << "of 15 ms of exchanges the step waited for 5";
  // A step that takes no exchange, and an evaluation between the two, which belongs to none.
  account.enter(Phase::kEvaluation, after_ms(70));
  account.enter(Phase::kOther, after_ms(80));
  account.begin_step(9, after_ms(90));
  EXPECT_EQ(account.ended().times.hidden, 0);
  EXPECT_EQ(account.ended().times.wait, 0);
}

TEST(StepAccount, EvaluationsAndCheckpointsBelongToNoStep) {
  StepAccount account;
  take_step(account, 1);
  account.enter(Phase::kEvaluation, after_ms(100));
  account.moved().add(1000, 1000);
  account.exchange("all_gather_strings", after_ms(110), after_ms(120), 8);
  account.enter(Phase::kCheckpoint, after_ms(400));
  take_step(account, 2, 900);
  EXPECT_EQ(account.ended().step, 1);
  EXPECT_NEAR(account.ended().times.other, 0.007F, kExact);
  EXPECT_EQ(account.ended().times.sent_bytes, 0);
  EXPECT_EQ(account.ended().times.hidden, 0);
  account.end_step(after_ms(1000));
  EXPECT_EQ(account.ended().step, 2);
  EXPECT_NEAR(account.ended().times.other, 0.007F, kExact);
}

TEST(StepAccount, HiddenIsTheUnionOfExchangesWithinForwardAndBackward) {
  StepAccount account;
  take_step(account, 1);
  account.exchange("all-reduce of gradient bucket 1", after_ms(50), after_ms(60), 1);
  account.exchange("all-reduce of gradient bucket 0", after_ms(40), after_ms(55),
                   1);  // overlaps the first
  account.exchange("all-reduce of gradient bucket 2", after_ms(65), after_ms(80),
                   1);                                                   // 6 ms of it are waited
  account.exchange("figures of a step", after_ms(75), after_ms(86), 1);  // all of it is
  EXPECT_NEAR(account.so_far().hidden, 0.026F, kExact);
  account.end_step(after_ms(100));
  EXPECT_NEAR(account.ended().times.hidden, 0.026F, kExact);
  EXPECT_LE(account.ended().times.hidden,
            account.ended().times.forward + account.ended().times.backward);
  take_step(account, 2, 100);
  account.end_step(after_ms(200));
  EXPECT_EQ(account.ended().times.hidden, 0) << "of a step without exchanges";
}

TEST(StepAccount, ExchangesThatAPassStandsStillForAreNotHidden) {
  StepAccount account;
  account.begin_step(1, after_ms(0));
  account.enter(Phase::kForward, after_ms(0));
  account.exchange("moments of a batch norm", after_ms(5), after_ms(9), 64);
  account.stood_still(after_ms(5), after_ms(9));
  account.exchange("all-reduce of gradient bucket 0", after_ms(8), after_ms(12), 64);
  account.enter(Phase::kWait, after_ms(20));
  account.stood_still(after_ms(21), after_ms(25));  // in the phase that is for it
  account.end_step(after_ms(30));
  EXPECT_NEAR(account.ended().times.hidden, 0.003F, kExact);
}

TEST(StepAccount, ALostBatchCountsForTheStepThatIsStillDue) {
  StepAccount account;
  take_step(account, 3);
  take_step(account, 3, 100);
  EXPECT_EQ(account.ended().step, 0);
  account.begin_step(4, after_ms(200));
  EXPECT_EQ(account.ended().step, 3);
  EXPECT_NEAR(account.ended().times.forward, 0.040F, kExact);
  EXPECT_NEAR(account.ended().times.wait, 0.030F, kExact);
}

TEST(StepAccount, BusyLastsFromTheEndOfAWaitToTheBeginOfTheNext) {
  StepAccount account;
  take_step(account, 1);
  take_step(account, 2, 100);
  EXPECT_EQ(account.ended().busy, 0) << "nothing was waited for before";
  account.enter(Phase::kEvaluation, after_ms(200));
  take_step(account, 3, 300);
  EXPECT_NEAR(account.ended().busy, 0.085, kExact);  // from 86 to 171
  account.end_step(after_ms(400));
  EXPECT_NEAR(account.ended().busy, 0.185, kExact);  // from 186 to 371
}

TEST(StepAccount, CountsTheBytesOfAStep) {
  StepAccount account;
  account.moved().add(5, 5);  // before there are steps
  take_step(account, 1);
  account.moved().add(100, 300);
  account.begin_step(2, after_ms(100));
  EXPECT_EQ(account.ended().times.sent_bytes, 100);
  EXPECT_EQ(account.ended().times.received_bytes, 300);
  account.enter(Phase::kForward, after_ms(110));
  account.moved().add(7, 8);
  account.enter(Phase::kWait, after_ms(120));
  EXPECT_EQ(account.so_far().sent_bytes, 7);
  EXPECT_EQ(account.so_far().received_bytes, 8);
}

TEST(SpanRecorder, KeepsPhasesAndExchangesOfTheStepsThatWerePlanned) {
  StepAccount account;
  account.recorder().plan(2, 3);
  take_step(account, 1);
  account.exchange("all-reduce of gradient bucket 0", after_ms(50), after_ms(60), 10);
  take_step(account, 2, 100);
  EXPECT_TRUE(account.recorder().is_on());
  account.exchange("all-reduce of gradient bucket 0", after_ms(150), after_ms(160), 10);
  account.background("batch", after_ms(151), after_ms(152));
  take_step(account, 3, 200);
  EXPECT_TRUE(account.recorder().is_over(3));
  EXPECT_FALSE(account.recorder().is_over(2));
  account.enter(Phase::kEvaluation, after_ms(300));
  account.begin_step(4, after_ms(400));
  EXPECT_FALSE(account.recorder().is_on());
  take_step(account, 4, 400);
  RecordedSpans recorded = account.recorder().take(4);
  EXPECT_EQ(recorded.first_step, 2);
  EXPECT_EQ(recorded.last_step, 3);
  ASSERT_EQ(recorded.spans.size(), 13u);  // of each step 5 phases; 3 others
  std::vector<std::string> order;
  for (std::size_t i = 0; i < recorded.spans.size(); ++i) {
    const Span& span = recorded.spans[i];
    order.push_back(recorded.names.at(static_cast<std::size_t>(span.name)));
    EXPECT_GE(span.begin, recorded.spans[i > 0 ? i - 1 : 0].begin);
    EXPECT_GT(span.length, 0);
    if (order.back() == "gradient bucket 0") {
      EXPECT_EQ(span.bytes, 10);
    }
  }
  EXPECT_EQ(order, (std::vector<std::string>{"data", "forward", "backward", "gradient bucket 0",
                                             "batch", "wait", "optimizer", "data", "forward",
                                             "backward", "wait", "optimizer", "evaluation"}));
  EXPECT_EQ(recorded.spans[0].step, 2);
  EXPECT_EQ(recorded.spans[7].step, 3);
  EXPECT_NEAR(recorded.spans[7].begin - recorded.spans[0].begin, 0.1, 1e-5);
  EXPECT_EQ(recorded.spans[3].row, SpanRow::kExchange);
  EXPECT_EQ(recorded.spans[4].row, SpanRow::kBackground);
}

TEST(SpanRecorder, GivesWhatItHasWhenTheRunEndsBefore) {
  StepAccount account;
  account.recorder().plan(1, 100);
  take_step(account, 1);
  EXPECT_TRUE(account.recorder().has_begun());
  RecordedSpans recorded = account.recorder().take(1);
  EXPECT_EQ(recorded.first_step, 1);
  EXPECT_EQ(recorded.last_step, 1);
  EXPECT_EQ(recorded.spans.size(), 5u);
  EXPECT_FALSE(account.recorder().has_begun());
  // Another one starts anew.
  account.recorder().plan(2, 2);
  take_step(account, 2, 100);
  EXPECT_EQ(account.recorder().take(2).spans.size(), 5u);
}

TEST(SpanRecorder, LeavesOutWhatIsTooMuchAndSaysHowMuch) {
  SpanRecorder recorder;
  recorder.plan(1, 1);
  recorder.begin_step(1);
  for (std::size_t i = 0; i < SpanRecorder::kMostSpans + 5; ++i) {
    recorder.add({.step = 1}, "batch", after_ms(0), after_ms(1));
  }
  RecordedSpans recorded = recorder.take(1);
  EXPECT_EQ(recorded.spans.size(), SpanRecorder::kMostSpans);
  EXPECT_EQ(recorded.dropped, 5);
}

}  // namespace
}  // namespace lockstep
