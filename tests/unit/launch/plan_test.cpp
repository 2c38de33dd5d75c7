#include "launch/plan/plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Transformer-base on two hosts: 0.9 s of compute a step, 260 MB of gradients.
PlanInputs usual_inputs(double bytes_per_second) {
  PlanInputs in;
  in.config = "base.toml";
  in.hosts = {"a", "b"};
  in.facts.unit = "tok";
  in.facts.of_ranks = 2;
  in.facts.gradient_bytes = 260'000'000;
  in.facts.matrix_sides = 100'000;
  in.facts.other_numbers = 50'000;
  in.facts.targets_per_step = 4000;
  in.facts.steps_in_epoch = 1000;
  in.facts.length.steps = 50'000;
  for (int i = 0; i < 5; ++i) in.facts.steps.push_back({0.9, 0.9, 0, 0, 4000});
  for (int b = 1; b <= 65; ++b) in.facts.buckets.push_back({4'000'000, 0.25 + 0.01 * (b - 1)});
  in.compute = make_compute_model(in.facts, {});
  in.link = {.latency_seconds = 1e-4, .bytes_per_second = bytes_per_second};
  in.evaluation_seconds = 0;
  in.price_per_hour = 0.5;
  return in;
}

TEST(Plan, AdvisesSmallerMessagesWhereTheNetworkIsSlow) {
  Plan plan = make_plan(usual_inputs(117e6));
  EXPECT_NEAR(plan.base.step.seconds, 0.9 + (0.25 + 2.22 - 0.89), 0.05);
  ASSERT_GE(plan.best, 0);
  EXPECT_EQ(plan.choices[plan.best].scenario.name, "comm.hook=bf16");
  ASSERT_GE(plan.best_changing, 0);
  EXPECT_NE(plan.advice.find("of a step waits for the network"), std::string::npos) << plan.advice;
  EXPECT_NEAR(plan.base.cost, 0.5 * 2 * 50'000 * plan.base.step.seconds / 3600, 1e-6);
}

// All choices then take the same time; what they get done in it differs.
TEST(Plan, AdvisesARunThatEndsByTimeAsWell) {
  PlanInputs in = usual_inputs(117e6);
  in.facts.length.minutes = 60;
  Plan plan = make_plan(in);
  EXPECT_TRUE(plan.base.run.ends_early);
  ASSERT_GE(plan.best, 0) << plan.advice;
  EXPECT_EQ(plan.choices[plan.best].scenario.name, "comm.hook=bf16");
}

TEST(Plan, LeavesAFastNetworkAlone) {
  Plan plan = make_plan(usual_inputs(2e9));
  EXPECT_EQ(plan.best, -1) << plan.advice;
  EXPECT_LT(plan.base.step.wait, 0.01);
}

TEST(Plan, SaysWhenAHostFewerWouldBeFaster) {
  Plan plan = make_plan(usual_inputs(20e6));
  EXPECT_NE(plan.advice.find("1 host would be faster than 2"), std::string::npos) << plan.advice;
}

TEST(Plan, SaysWhereABandwidthIsTheLeastThatItCanBe) {
  PlanInputs in = usual_inputs(117e6);
  EXPECT_EQ(plan_report(make_plan(in)).find("at least"), std::string::npos);
  in.link_at_least = true;
  EXPECT_NE(plan_report(make_plan(in)).find("Network:        at least 117.0 MB/s"),
            std::string::npos)
      << plan_report(make_plan(in));
  EXPECT_EQ(to_json(make_plan(in)).at("network").at("at_least"), true);
}

TEST(Plan, WritesWhatTheRunReads) {
  Plan plan = make_plan(usual_inputs(117e6));
  Json json = Json::parse(to_json(plan).dump());
  EXPECT_EQ(json.at("ranks"), 2);
  const Json& step = json.at("prediction").at("step");
  EXPECT_DOUBLE_EQ(step.at("seconds"), plan.base.step.seconds);
  EXPECT_DOUBLE_EQ(step.at("seconds").get<double>(), step.at("compute_seconds").get<double>() +
                                                         step.at("wait_seconds").get<double>() +
                                                         step.at("data_seconds").get<double>());
  RunMeasurement back = measurement_from_json(json.at("measurement"));
  EXPECT_EQ(back.buckets.size(), 65u);
  EXPECT_EQ(back.gradient_bytes, 260'000'000);
  EXPECT_EQ(back.length.steps, 50'000);
  EXPECT_NE(plan_report(plan).find("what if"), std::string::npos);
}

TEST(Plan, ReadsRatesAndTimesWithUnits) {
  EXPECT_NEAR(parse_bandwidth("1gbit", "-"), 125e6 * kGoodput, 1);
  EXPECT_NEAR(parse_bandwidth("100 Mbit/s", "-"), 12.5e6 * kGoodput, 1);
  EXPECT_NEAR(parse_bandwidth("12.5MB/s", "-"), 12.5e6, 1);
  EXPECT_NEAR(parse_delay("20ms", "-"), 0.02, 1e-12);
  EXPECT_NEAR(parse_delay("150us", "-"), 150e-6, 1e-12);
  EXPECT_NEAR(parse_price("0.526/h", "-"), 0.526, 1e-12);
  for (const char* wrong : {"", "1", "gbit", "-1gbit", "0gbit", "1 parsec", "nangbit"}) {
    EXPECT_THROW(parse_bandwidth(wrong, "--bandwidth"), ConfigError) << wrong;
  }
}

}  // namespace
}  // namespace lockstep
