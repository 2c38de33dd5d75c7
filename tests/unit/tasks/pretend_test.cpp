#include "tasks/pretend.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "config/source.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

// The task with times of zero unless `settings` say otherwise, opened by a lone process.
std::unique_ptr<Task> opened(const std::vector<std::string>& settings = {}) {
  ConfigSource source = ConfigSource::from_text(
      "pretend = {step_milliseconds = 0.0, evaluation_milliseconds = 0.0}\nmodel.parameters = 1000",
      "test");
  for (const std::string& word : settings) source.override_with(word);
  auto task = make_pretend();
  source.read("", *task);
  source.finish();
  task->open({.seed = 1});
  return task;
}

StepParts in_parts(int64_t parts) { return StepParts(equal_shares(1, parts)); }

struct Pass {
  double loss = 0;
  torch::Tensor gradients;  // [weights], sums
};

// Runs one step in so many parts.
Pass pass_in(int64_t parts, const std::vector<std::string>& settings = {}) {
  const auto task = opened(settings);
  Pass out;
  for (int64_t part = 0; part < parts; ++part) {
    const auto batch =
        task->make_batch({.step_in_epoch = 5, .part = part, .parts = in_parts(parts)});
    if (batch == nullptr) continue;
    const LossParts loss = task->loss(*batch, 6);
    out.loss += loss.loss.item<double>();
    loss.loss.backward();
  }
  out.gradients = task->parameters().gradients().clone();
  return out;
}

TEST(Pretend, HasTheSameDigitsHoweverAStepIsShared) {
  const Pass whole = pass_in(1);
  EXPECT_GT(whole.gradients.abs().max().item<double>(), 0);
  for (int64_t parts : {2, 3, 7, 64, 100}) {
    const Pass shared = pass_in(parts);
    EXPECT_EQ(shared.loss, whole.loss) << parts;
    EXPECT_TRUE(shared.gradients.equal(whole.gradients)) << parts;
  }
}

TEST(Pretend, HasTheDigitsItHadBefore) {
  const Pass pass = pass_in(1);
  EXPECT_EQ(pass.loss, 6.23486328125);
  EXPECT_EQ(pass.gradients[0].item<double>() * 32768, -63475);  // in units of 2^-15
  EXPECT_EQ(pass.gradients[999].item<double>() * 32768, -6131);
}

TEST(Pretend, LossFallsOnTheWayDownTheGradient) {
  const auto task = opened();
  double first = 0, last = 0;
  for (int64_t step = 0; step < 40; ++step) {
    const auto batch = task->make_batch({.step_in_epoch = step});
    task->parameters().gradients().zero_();
    const LossParts loss = task->loss(*batch, step + 1);
    loss.loss.backward();
    last = loss.loss.item<double>() / 64;
    if (step == 0) first = last;
    torch::NoGradGuard no_grad;
    task->parameters().values().sub_(task->parameters().gradients(), 0.05);
  }
  EXPECT_LT(last, 0.3 * first);
}

TEST(Pretend, TakesTheTimeOfItsShare) {
  const auto task = opened({"pretend.step_milliseconds=256", "batch.items=64"});
  auto seconds = [&](int64_t parts) {
    const auto batch = task->make_batch({.parts = in_parts(parts)});
    const auto begin = std::chrono::steady_clock::now();
    task->loss(*batch, 1).loss.backward();
    return seconds_since(begin);
  };
  EXPECT_GE(seconds(1), 0.256);
  const double little = seconds(64);
  EXPECT_GE(little, 0.004);
  EXPECT_LT(little, 0.2) << "4 ms, unless other programs hold it up";
}

TEST(Pretend, ABackwardPassGivesOneLayerAfterTheOther) {
  const auto task = opened({"pretend.step_milliseconds=40", "model.layers=4"});
  const auto batch = task->make_batch({});
  const LossParts loss = task->loss(*batch, 1);
  std::vector<std::string> order;
  std::vector<double> at;
  const auto begin = std::chrono::steady_clock::now();
  for (const ParameterRef& layer : task->parameters().list()) {
    layer->value.register_hook([&, name = layer->name](const torch::Tensor&) {
      order.push_back(name);
      at.push_back(seconds_since(begin));
    });
  }
  loss.loss.backward();
  EXPECT_EQ(order, (std::vector<std::string>{"layer.3", "layer.2", "layer.1", "layer.0"}));
  EXPECT_GE(at.back() - at.front(), 0.015) << "three of four parts of two thirds of 40 ms";
}

TEST(Pretend, SaysWhatIsWrongWithASlowRank) {
  EXPECT_EQ(pretended_slowness({}, 3), 1);
  EXPECT_EQ(pretended_slowness({"3:2.5", "0:0.5"}, 3), 2.5);
  EXPECT_EQ(pretended_slowness({"3:2.5", "0:0.5"}, 1), 1);
  for (const char* entry : {"3", "3:", ":2", "a:2", "3:2x", "3:0", "3:-1", "-1:2", "3:inf", ""}) {
    EXPECT_ERROR(pretended_slowness({entry}, 0), ConfigError, fmt::format("got \"{}\"", entry));
  }
}

TEST(Pretend, SaysWhatDoesNotFit) {
  const std::vector<std::string> layers{"model.layers=1001"};
  EXPECT_ERROR(opened(layers), ConfigError, "model.parameters: 1000 are too few");
  const std::vector<std::string> items{"batch.items=2", "batch.accumulate=3"};
  EXPECT_ERROR(opened(items), ConfigError, "expected at least 3");
  EXPECT_ERROR(opened()->items_of("tset"), DataError, "did you mean test?");
}

}  // namespace
}  // namespace lockstep
