#include "train/config/run_config.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tasks/catalogue.h"

namespace lockstep {
namespace {

RunConfig read(const std::vector<std::string>& words, const std::string& toml = "") {
  ConfigSource source = ConfigSource::from_text(toml, "run.toml");
  for (const std::string& word : words) source.override_with(word);
  return read_run_config(std::move(source));
}

// What a run folder keeps is the whole configuration: it gives the same one again.
TEST(RunConfigText, ReadsBackAsItWasForEveryTaskAndOptimizer) {
  for (const char* task : {"translation", "images", "text"}) {
    for (const char* optimizer : {"adam", "adamw", "lazy_adam", "novograd", "sgd"}) {
      RunConfig config =
          read({fmt::format("task.name={}", task), fmt::format("optimizer.name={}", optimizer),
                "run.seed=7", "training.freeze=[\"head.*\", \"stem.*\"]"});
      const std::string text = config.to_toml();
      EXPECT_EQ(read({}, text).to_toml(), text) << task << " " << optimizer;
    }
  }
}

TEST(RunConfigText, WordsGoOverTheFile) {
  const RunConfig config = read({"training.steps=5"}, "[training]\nsteps = 9\nclip_norm = 2.0\n");
  EXPECT_EQ(config.training.steps, 5);
  EXPECT_EQ(config.training.clip_norm, 2);
}

TEST(RunConfigText, DefaultsAreThoseOfTheTask) {
  EXPECT_EQ(read({}).evaluation.split, "dev");
  EXPECT_EQ(read({"task.name=images"}).evaluation.split, "val");
  EXPECT_EQ(read({"task.name=text"}).evaluation.split, "validation");
  EXPECT_EQ(read({"task.name=images"}).evaluation.metrics, std::vector<std::string>{"acc1"});
  EXPECT_EQ(read({"task.name=images"}).log_style(), "imagenet");
}

TEST(RunConfigText, AStepIsCountedAsAWholeOrByRank) {
  const std::pair<const char*, const char*> keys[] = {{"translation", "tokens"},
                                                      {"translation", "sentences"},
                                                      {"images", "images"},
                                                      {"text", "examples"},
                                                      {"pretend", "items"}};
  for (const auto& [task, key] : keys) {
    const std::string name = fmt::format("task.name={}", task),
                      whole = fmt::format("batch.{}", key);
    auto size = [](RunConfig& config) { return *config.task->step_size_keys(); };
    RunConfig by_rank = read({name, "batch.per_rank=7"});
    EXPECT_EQ(size(by_rank).per_rank->per_rank, 7);
    for (const auto& w : size(by_rank).whole) EXPECT_EQ(*w.value, 0) << task;
    EXPECT_EQ(read({}, by_rank.to_toml()).to_toml(), by_rank.to_toml());

    EXPECT_ERROR(read({name, "batch.per_rank=7", whole + "=64"}), ConfigError,
                 "batch.per_rank: 7 a rank's micro-batch, but " + whole +
                     " = 64 counts the whole step: set one of them to 0");
    EXPECT_ERROR(read({name}, fmt::format("[batch]\nper_rank = 7\n{} = 64\n", key)), ConfigError,
                 "run.toml:2:12: batch.per_rank: 7 a rank's");
    RunConfig word = read({name, "batch.per_rank=7"}, fmt::format("[batch]\n{} = 64\n", key));
    EXPECT_EQ(size(word).per_rank->per_rank, 7) << "a word goes over the file";
    RunConfig back = read({name, whole + "=64"}, "[batch]\nper_rank = 7\n");
    EXPECT_EQ(size(back).per_rank->per_rank, 0);
  }
  EXPECT_ERROR(read({"task.name=images", "batch.images=0"}), ConfigError,
               "batch.images: 0: set batch.images or batch.per_rank");
}

TEST(RunConfigText, SharesAreOfEveryTaskAndNotWhereRanksComputeAlikeOrAlone) {
  for (const char* task : {"translation", "images", "text"}) {
    const std::string name = fmt::format("task.name={}", task);
    EXPECT_EQ(read({name}).task->shares()->shares, "equal");
    EXPECT_TRUE(read({name, "batch.shares=speed"}).task->shares()->follows_speed());
    EXPECT_EQ(read({name, "batch.shares=10:9:5"}).task->shares()->listed().at(2), 5);
    EXPECT_ERROR(read({name, "batch.shares=sped"}), ConfigError, "did you mean speed?");
    EXPECT_ERROR(read({name, "batch.shares=10:0"}), ConfigError,
                 "\"10:0\": expected equal, speed, or a whole number");
    EXPECT_ERROR(read({name, "batch.shares=speed", "comm.strategy=diloco", "comm.local_steps=4"}),
                 ConfigError, "take steps by themselves");
  }
  const std::vector<std::string> words = {"task.name=images", "batch.shares=speed"};
  auto with = [&](const std::string& word) {
    std::vector<std::string> out = words;
    out.push_back(word);
    return out;
  };
  EXPECT_ERROR(read(with("model.sync_batch_norm=true")), ConfigError, "compute together");
  EXPECT_ERROR(read(with("images.share=machine")), ConfigError, "that of its images");
  EXPECT_ERROR(read(with("images.cache_bytes=1000000")), ConfigError, "as those of a list");
}

TEST(RunConfigText, EpochsTakeThePlaceOfSteps) {
  const RunConfig config = read({"training.epochs=3"});
  EXPECT_EQ(config.training.epochs, 3);
  EXPECT_EQ(config.training.steps, 0);
  EXPECT_ERROR(read({"training.epochs=3", "training.steps=9"}), ConfigError,
               "would end after 3 epochs or 9 steps");
  EXPECT_ERROR(read({"training.steps=0"}), ConfigError, "0 steps and 0 epochs");
}

TEST(RunConfigText, EveryErrorIsToldWithItsPlaceAndTheNearestName) {
  try {
    read({}, "[training]\nstepps = 9\nclip_norm = \"much\"\n[optimizer]\nname = \"adm\"\n");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    const std::string text = error.describe();
    EXPECT_NE(text.find("run.toml:2"), std::string::npos) << text;
    EXPECT_NE(text.find("training.steps"), std::string::npos) << text;
    EXPECT_NE(text.find("run.toml:3"), std::string::npos) << text;
    EXPECT_NE(text.find("did you mean adam?"), std::string::npos) << text;
  }
}

TEST(RunConfigText, WhatDoesNotGoTogetherIsRefused) {
  EXPECT_ERROR(read({"evaluation.patience=2", "evaluation.every=0"}), ConfigError,
               "evaluation.patience");
  EXPECT_ERROR(read({"training.freeze=[\"(\"]"}), ConfigError, "training.freeze");
  EXPECT_ERROR(read({"logging.style=imagenet"}), ConfigError, "Acc@5");
  EXPECT_ERROR(read({"evaluation.metrics=blue"}), ConfigError, "bleu");
  EXPECT_ERROR(read({"logging.mlperf=true", "evaluation.every=0"}), ConfigError, "logging.mlperf");
}

}  // namespace
}  // namespace lockstep
