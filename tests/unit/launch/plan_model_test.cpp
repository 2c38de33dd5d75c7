#include "launch/plan/plan_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"

namespace lockstep {
namespace {

// What a link of that kind would have been measured as.
ExchangeTiming timing_of(double bytes, int hosts, const Link& link) {
  return {bytes, exchange_seconds(bytes, hosts, link), bytes * link.cpu_seconds_per_byte};
}

TEST(PlanModel, RecoversLatencyAndBandwidthFromTwoSizes) {
  for (int hosts : {2, 3, 8}) {
    Link link{.latency_seconds = 2e-3, .bytes_per_second = 117e6, .cpu_seconds_per_byte = 1e-9};
    Link fitted = fit_link(timing_of(64e3, hosts, link), timing_of(4e6, hosts, link), hosts);
    EXPECT_NEAR(fitted.latency_seconds, 2e-3, 1e-9) << hosts;
    EXPECT_NEAR(fitted.bytes_per_second, 117e6, 1) << hosts;
    EXPECT_NEAR(fitted.cpu_seconds_per_byte, 1e-9, 1e-15) << hosts;
  }
}

TEST(PlanModel, TakesATransferThatDelaysHideAsATenth) {
  EXPECT_TRUE(hides_transfer({64e3, 0.105}, {1.4e6, 0.1}));
  EXPECT_FALSE(hides_transfer({64e3, 0.01}, {1.4e6, 0.02}));
  Link fitted = fit_link({64e3, 0.105}, {1.4e6, 0.1}, 2);
  EXPECT_NEAR(exchange_seconds(1.4e6, 2, fitted), 0.11, 0.006);
  EXPECT_GT(fitted.bytes_per_second, 100e6);
}

TEST(PlanModel, RefusesToFitSizesThatTellNothing) {
  EXPECT_THROW(fit_link({64e3, 0.2}, {4e6, 0.1}, 2), MachineError);
  EXPECT_THROW(fit_link({4e6, 0.1}, {4e6, 0.2}, 2), MachineError);
  EXPECT_THROW(fit_link({64e3, 0.1}, {4e6, 0.2}, 1), MachineError);
}

// An independent account of the same rules, in ticks: lanes take buckets in order when they are
// ready, the link serves the one that came first, latencies pass beside it.
double ticked_arrival(const std::vector<ReadyBucket>& buckets, int hosts, const Link& link,
                      int lanes) {
  constexpr double kTick = 1e-4;
  struct Going {
    double left, latency;  // seconds of link, then of waiting
  };
  std::vector<Going> going;
  std::size_t next = 0;
  double now = 0;
  for (; next < buckets.size() || !going.empty(); now += kTick) {
    while (next < buckets.size() && static_cast<int>(going.size()) < lanes &&
           buckets[next].ready_seconds <= now) {
      going.push_back({exchange_bytes(buckets[next].bytes, hosts) / link.bytes_per_second,
                       (hosts == 2 ? 1 : 2) * link.latency_seconds});
      ++next;
    }
    bool link_busy = false;
    for (Going& g : going) {
      if (g.left > 0) {
        if (!link_busy) g.left -= kTick;
        link_busy = true;
      } else {
        g.latency -= kTick;
      }
    }
    std::erase_if(going, [](const Going& g) { return g.left <= 0 && g.latency <= 0; });
  }
  return now;
}

TEST(PlanModel, OverlapsBucketsAsASimulatedTimelineDoes) {
  std::vector<ReadyBucket> buckets;
  for (int i = 0; i < 8; ++i) buckets.push_back({i == 0 ? 1e6 : 4e6, 0.2 + 0.05 * i});
  for (int hosts : {2, 4}) {
    for (int lanes : {1, 2}) {
      for (Link link : {Link{1e-3, 12.5e6}, Link{0.02, 125e6}, Link{1e-4, 1e9}, Link{0.1, 50e6}}) {
        double expected = ticked_arrival(buckets, hosts, link, lanes);
        // Every bucket's two phases end up to a tick late.
        EXPECT_NEAR(last_arrival_seconds(buckets, hosts, link, lanes), expected, 17e-4)
            << hosts << " hosts, " << lanes << " lanes, " << link.latency_seconds;
      }
    }
  }
}

TEST(PlanModel, HidesAFastExchangeButForTheLastBucket) {
  std::vector<ReadyBucket> buckets = {{1e6, 0.5}, {1e6, 1.0}};
  Link fast{.latency_seconds = 1e-4, .bytes_per_second = 1e9};
  EXPECT_NEAR(last_arrival_seconds(buckets, 2, fast, 2), 1.0 + 1e-3 + 1e-4, 1e-9);
}

// 2 ranks, 1,000 targets each in 0.5 s of passes and 0.05 s of update; 4 ranks 0.3 s.
RunMeasurement measured(int of_ranks, double pass) {
  RunMeasurement m;
  m.unit = "tok";
  m.of_ranks = of_ranks;
  m.gradient_bytes = 40'000'000;
  m.targets_per_step = 2000;
  m.steps_in_epoch = 100;
  for (int i = 0; i < 5; ++i) m.steps.push_back({pass + 0.06, pass + 0.05, 0, 0.01, 2000});
  for (int b = 1; b <= 10; ++b) m.buckets.push_back({4'000'000, pass * (0.4 + 0.06 * b)});
  m.length = {.steps = 1000, .evaluation_every = 300, .checkpoint_every = 300};
  m.checkpoint_seconds = 2;
  m.held_seconds = 2;
  return m;
}

TEST(PlanModel, SplitsComputeIntoAFixedAndAProportionalPart) {
  ComputeModel compute = make_compute_model(measured(2, 0.5), measured(4, 0.3));
  EXPECT_NEAR(compute.fixed_seconds, 0.1, 1e-9);
  EXPECT_NEAR(compute.seconds_per_target, 0.4 / 1000, 1e-12);
  EXPECT_NEAR(compute.update_seconds, 0.05, 1e-9);
  // Noise that makes half the work slower than the whole leaves a constant pass.
  ComputeModel noisy = make_compute_model(measured(2, 0.5), measured(4, 0.6));
  EXPECT_NEAR(noisy.fixed_seconds, 0.5, 1e-9);
  ComputeModel one = make_compute_model(measured(2, 0.5), {});
  EXPECT_NEAR(one.fixed_seconds, 0, 1e-9);
}

TEST(PlanModel, PredictsASlowLinkByItsBytes) {
  ComputeModel compute = make_compute_model(measured(2, 0.5), measured(4, 0.3));
  Scenario s{.hosts = 2, .link = {.latency_seconds = 1e-3, .bytes_per_second = 12.5e6}};
  StepPrediction step = predict_step(compute, s);
  // The link is busy from the first bucket on: 40 MB take 3.2 s.
  EXPECT_NEAR(step.wait, 0.5 * 0.46 + 3.2 - 0.5, 0.03);
  EXPECT_NEAR(step.compute, 0.55, 1e-9);
  EXPECT_NEAR(step.sent_bytes, 40e6, 100);
  EXPECT_NEAR(step.seconds, step.compute + step.wait + step.data, 1e-12);
  s.wire_factor = 0.5;
  EXPECT_NEAR(predict_step(compute, s).wait, 0.5 * 0.46 + 1.6 - 0.5, 0.03);
  s.wire_factor = 1;
  s.local_steps = 100;
  EXPECT_NEAR(predict_step(compute, s).wait, 0.032, 0.005);
  EXPECT_NEAR(predict_step(compute, s).sent_bytes, 0.4e6, 100);
}

TEST(PlanModel, HidesAFastLinkBehindTheBackwardPass) {
  ComputeModel compute = make_compute_model(measured(2, 0.5), measured(4, 0.3));
  Scenario s{.hosts = 2, .link = {.latency_seconds = 5e-5, .bytes_per_second = 1.2e9}};
  StepPrediction step = predict_step(compute, s);
  EXPECT_LT(step.wait, 0.005);
  EXPECT_GT(step.exchange, 0.033);
  EXPECT_EQ(predict_step(compute, {.hosts = 1}).wait, 0);
}

TEST(PlanModel, AccumulationTakesOneExchangeForTwiceTheTargets) {
  ComputeModel compute = make_compute_model(measured(2, 0.5), measured(4, 0.3));
  Scenario s{.hosts = 2, .link = {.latency_seconds = 1e-3, .bytes_per_second = 12.5e6}};
  StepPrediction once = predict_step(compute, s);
  s.accumulate = 2;
  StepPrediction twice = predict_step(compute, s);
  EXPECT_EQ(twice.targets, 4000);
  EXPECT_NEAR(twice.seconds, once.seconds + 0.5, 0.001);  // one more pass, the same exchange
}

TEST(PlanModel, CountsStepsEvaluationsAndCheckpointsToTheEnd) {
  RunMeasurement facts = measured(2, 0.5);
  StepPrediction step{.seconds = 2, .sent_bytes = 10};
  RunPrediction run = predict_run(step, facts, {.hosts = 2}, 20);
  EXPECT_EQ(run.steps, 1000);
  EXPECT_EQ(run.evaluations, 4);  // at 300, 600, 900 and the end
  EXPECT_EQ(run.checkpoints, 4);
  EXPECT_DOUBLE_EQ(run.seconds(), 2000 + 4 * 10 + 4 * 2);
  EXPECT_DOUBLE_EQ(run.sent_bytes, 10000);
  // Written beside the training: of the 700 s that one takes, the 600 of the steps hold up nothing.
  facts.checkpoint_seconds = 700;
  EXPECT_DOUBLE_EQ(predict_run(step, facts, {.hosts = 2}, 20).checkpoint_seconds, 4 * 100);
  facts.checkpoint_seconds = 500;
  EXPECT_DOUBLE_EQ(predict_run(step, facts, {.hosts = 2}, 20).checkpoint_seconds, 4 * 2);
  facts.length.minutes = 10;
  run = predict_run(step, facts, {.hosts = 2}, 20);
  EXPECT_TRUE(run.ends_early);
  EXPECT_NEAR(static_cast<double>(run.steps), 293, 3);
  facts.length = {.steps = 0, .epochs = 3};
  EXPECT_EQ(predict_run(step, facts, {}, 0).steps, 300);
}

}  // namespace
}  // namespace lockstep
