#include "train/listeners/mlperf_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "train/records/page_cache.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

MlperfRun some_run() {
  return {.org = "org",
          .platform = "2 x cpu",
          .division = "open",
          .status = "research",
          .benchmark = "resnet",
          .began_ms = 1000,
          .seed = 7,
          .batch_size = 10,
          .accumulation = 2,
          .train_samples = 40,
          .eval_samples = 12,
          .settings = {{"opt_name", "sgd"}, {"opt_base_learning_rate", 0.5}},
          .metric = "acc1",
          .whole = 100};
}

std::vector<Json> lines_of(const fs::path& file) {
  std::vector<Json> out;
  const std::string head = ":::MLLOG ";
  for (const std::string& line : read_lines(file)) {
    EXPECT_EQ(line.substr(0, head.size()), head);
    out.push_back(Json::parse(line.substr(head.size())));
    EXPECT_EQ(out.back().at("namespace"), "");
    EXPECT_TRUE(out.back().at("time_ms").is_number_integer());
    EXPECT_EQ(out.back().at("metadata").at("file"), "train/listeners/mlperf_log.cpp");
    EXPECT_GT(out.back().at("metadata").at("lineno"), 0);
  }
  return out;
}

std::vector<std::string> keys_of(const std::vector<Json>& lines) {
  std::vector<std::string> out;
  for (const Json& line : lines) out.push_back(line.at("key"));
  return out;
}

const Json& one(const std::vector<Json>& lines, const std::string& key) {
  const Json* found = nullptr;
  for (const Json& line : lines) {
    if (line.at("key") != key) continue;
    EXPECT_EQ(found, nullptr) << key << " is there twice";
    found = &line;
  }
  if (found == nullptr) throw std::runtime_error("no line " + key);
  return *found;
}

void steps(MlperfLog& log, int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step) {
    StepRecord record;
    record.step = step;
    record.epoch = (step - 1) / 4;
    record.step_in_epoch = (step - 1) % 4;
    record.steps_in_epoch = 4;
    record.seconds = 0.001;
    log.on_step(record);
  }
}

void evaluate(MlperfLog& log, int64_t step, double value) {
  Evaluation result;
  result.metrics["acc1"] = value;
  log.on_evaluation({.step = step, .epoch = (step - 1) / 4, .seconds = 0.001, .result = &result});
}

TEST(MlperfLog, TellsOfARunInMlperfsOrder) {
  TemporaryFolder folder;
  MlperfLog log(folder.path(), some_run());
  EXPECT_EQ(log.path().filename(), "mlperf_0.log");
  log.on_start(1, 8);
  steps(log, 1, 4);
  evaluate(log, 4, 62.5);
  steps(log, 5, 8);
  evaluate(log, 8, 75);
  log.on_end("epochs");
  const std::vector<Json> lines = lines_of(log.path());
  EXPECT_EQ(keys_of(lines), (std::vector<std::string>{"cache_clear",
                                                      "init_start",
                                                      "submission_benchmark",
                                                      "submission_org",
                                                      "submission_division",
                                                      "submission_status",
                                                      "submission_platform",
                                                      "seed",
                                                      "global_batch_size",
                                                      "gradient_accumulation_steps",
                                                      "opt_name",
                                                      "opt_base_learning_rate",
                                                      "train_samples",
                                                      "eval_samples",
                                                      "init_stop",
                                                      "run_start",
                                                      "epoch_start",
                                                      "block_start",
                                                      "epoch_stop",
                                                      "block_stop",
                                                      "eval_start",
                                                      "eval_accuracy",
                                                      "eval_stop",
                                                      "epoch_start",
                                                      "block_start",
                                                      "epoch_stop",
                                                      "block_stop",
                                                      "eval_start",
                                                      "eval_accuracy",
                                                      "eval_stop",
                                                      "run_stop"}));
  int64_t before = 1000;
  for (const Json& line : lines) {
    EXPECT_GE(line.at("time_ms"), before);
    before = line.at("time_ms");
  }
  EXPECT_EQ(one(lines, "cache_clear").at("value"), false);
  EXPECT_EQ(one(lines, "init_start").at("time_ms"), 1000);
  EXPECT_EQ(one(lines, "init_start").at("event_type"), "INTERVAL_START");
  EXPECT_EQ(one(lines, "init_start").at("value"), nullptr);
  EXPECT_EQ(one(lines, "init_stop").at("event_type"), "INTERVAL_END");
  EXPECT_EQ(one(lines, "seed").at("event_type"), "POINT_IN_TIME");
  EXPECT_EQ(one(lines, "seed").at("value"), 7);
  EXPECT_EQ(one(lines, "opt_base_learning_rate").at("value"), 0.5);
  EXPECT_EQ(one(lines, "train_samples").at("value"), 40);
  EXPECT_EQ(one(lines, "run_stop").at("metadata").at("status"), "success");
  EXPECT_EQ(one(lines, "run_stop").at("metadata").at("samples_count"), 80);
  const Json& block = lines.at(17).at("metadata");
  EXPECT_EQ(block.at("first_epoch_num"), 1);
  EXPECT_EQ(block.at("epoch_count"), 1.0);
  EXPECT_EQ(block.at("step_num"), 0);
  const Json& accuracy = lines.at(21);
  EXPECT_EQ(accuracy.at("value"), 0.625) << "a share";
  EXPECT_EQ(accuracy.at("metadata").at("epoch_num"), 1);
  EXPECT_EQ(accuracy.at("metadata").at("step_num"), 4);
  EXPECT_EQ(accuracy.at("metadata").at("samples_count"), 40);
  EXPECT_EQ(accuracy.at("metadata").at("metric"), "acc1");
}

TEST(MlperfLog, StopsWhenTheTargetIsReached) {
  TemporaryFolder folder;
  MlperfRun run = some_run();
  run.target = 70;
  MlperfLog log(folder.path(), run);
  log.on_start(1, 8);
  steps(log, 1, 4);
  evaluate(log, 4, 62.5);
  steps(log, 5, 6);
  evaluate(log, 6, 70);
  steps(log, 7, 8);  // training may go on
  evaluate(log, 8, 60);
  log.on_end("epochs");
  const std::vector<Json> lines = lines_of(log.path());
  EXPECT_EQ(lines.back().at("key"), "run_stop");
  EXPECT_EQ(lines.back().at("metadata").at("status"), "success");
  EXPECT_EQ(lines.back().at("metadata").at("step_num"), 6);
  EXPECT_EQ(lines.at(lines.size() - 3).at("value"), 0.7);
}

TEST(MlperfLog, IsAbortedWithoutTheTargetOrByASignal) {
  TemporaryFolder folder;
  MlperfRun run = some_run();
  run.higher_is_better = false;
  run.target = 70;
  MlperfLog missed(folder.path(), run);
  missed.on_start(1, 8);
  steps(missed, 1, 8);
  evaluate(missed, 8, 71);
  missed.on_end("epochs");
  EXPECT_EQ(one(lines_of(missed.path()), "run_stop").at("metadata").at("status"), "aborted");

  MlperfLog stopped(folder.path(), some_run());
  EXPECT_EQ(stopped.path().filename(), "mlperf_1.log") << "each attempt has its own";
  stopped.on_start(5, 8);
  stopped.on_end("signal");
  const std::vector<Json> lines = lines_of(stopped.path());
  EXPECT_EQ(one(lines, "run_stop").at("metadata").at("status"), "aborted");
  EXPECT_EQ(one(lines, "run_stop").at("metadata").at("step_num"), 4);
}

TEST(MlperfLog, OfAClearedCacheSaysSo) {
  TemporaryFolder folder;
  MlperfRun run = some_run();
  run.cache_cleared = true;
  MlperfLog log(folder.path(), run);
  EXPECT_EQ(one(lines_of(log.path()), "cache_clear").at("value"), true);
  EXPECT_THROW(MlperfLog(folder.path() / "absent", some_run()), MachineError);
}

TEST(PageCache, IsDroppedThroughItsControlFile) {
  TemporaryFolder folder;
  const fs::path control = folder.path() / "drop_caches";
  write_file(control, "");
  drop_page_cache(control);
  EXPECT_EQ(read_file(control), "3\n");
  try {
    drop_page_cache(folder.path() / "absent");
    FAIL() << "nothing was dropped";
  } catch (const MachineError& error) {
    EXPECT_NE(error.describe().find("mlperf.clear_cache=false"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
