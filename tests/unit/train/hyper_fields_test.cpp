#include "train/config/hyper_fields.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace lockstep {
namespace {

std::map<std::string, HyperValue> shown(const std::vector<std::string>& words) {
  ConfigSource source = ConfigSource::from_text("", "test");
  for (const std::string& word : words) source.override_with(word);
  RunConfig config = read_run_config(std::move(source));
  const HyperParameters out = hyper_parameters(config);
  return {out.values.begin(), out.values.end()};
}

TEST(HyperFields, ShowWhatDecidesWhatIsLearned) {
  const auto values = shown({"optimizer.lr=0.5", "schedule.name=fixed", "training.clip_norm=0",
                             "run.folder=somewhere", "comm.streams=9", "logging.style=lockstep"});
  EXPECT_EQ(values.at("task.name"), HyperValue(std::string("translation")));
  EXPECT_EQ(values.at("optimizer.lr"), HyperValue(0.5));
  EXPECT_EQ(values.at("optimizer.beta2"), HyperValue(0.98)) << "the optimizer's defaults too";
  EXPECT_EQ(values.at("model.d_model").index(), 1u) << "whole numbers are numbers";
  EXPECT_EQ(values.at("run.seed"), HyperValue(1.0));
  EXPECT_EQ(values.at("training.clip_norm"), HyperValue(0.0));
  for (const char* hidden : {"run.folder", "comm.streams", "logging.style", "evaluation.every",
                             "schedule.warmup_steps", "larc.eta", "checkpoint.keep"}) {
    EXPECT_EQ(values.count(hidden), 0u) << hidden;
  }
}

TEST(HyperFields, ShowWhatAScheduleReadsAndWhatDiffersFromItsDefault) {
  const auto values = shown({"schedule.name=noam", "larc.mode=clip", "larc.eta=0.5"});
  EXPECT_EQ(values.at("schedule.warmup_steps"), HyperValue(4000.0));
  EXPECT_EQ(values.count("schedule.decay_rate"), 0u);
  EXPECT_EQ(values.at("larc.eta"), HyperValue(0.5));
  EXPECT_EQ(values.count("larc.epsilon"), 0u);
}

TEST(HyperFields, ShowFirstWhatExperimentsVary) {
  ConfigSource source = ConfigSource::from_text("", "test");
  for (const char* word : {"model.d_model=64", "training.steps=5", "run.seed=9"}) {
    source.override_with(word);
  }
  RunConfig config = read_run_config(std::move(source));
  EXPECT_EQ(hyper_parameters(config).first,
            (std::set<std::string>{"model.d_model", "optimizer.lr"}));
}

TEST(HyperFields, NameTheMetricsOfEvaluations) {
  ConfigSource source = ConfigSource::from_text("", "test");
  source.override_with("evaluation.metrics=[\"chrf\", \"loss\"]");
  RunConfig config = read_run_config(std::move(source));
  EXPECT_EQ(hyper_parameters(config).metrics,
            (std::vector<std::string>{"eval/chrf", "eval/loss", "train/loss"}));
}

}  // namespace
}  // namespace lockstep
