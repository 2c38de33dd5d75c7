#include "launch/fetch/held_checkpoints.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace lockstep {
namespace {

TEST(HeldCheckpoints, AStepIsOfTheFolderThatHasItsName) {
  EXPECT_EQ(step_in_path("checkpoints/step_900/DONE"), 900);
  for (const char* path :
       {"checkpoints/step_900", "checkpoints/step_0900/DONE", "step_900/DONE",
        "checkpoints/step_900.part/DONE", "checkpoints/step_-1/DONE", "checkpoints/step_/DONE"}) {
    EXPECT_FALSE(step_in_path(path)) << path;
  }
}

TEST(HeldCheckpoints, DoneNamesFilesOfTheCheckpointAlone) {
  const std::vector<DoneFile> files = read_done("{\"a.bin\": {\"bytes\": 3, \"sha256\": \"ab\"}}");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "a.bin");
  EXPECT_EQ(files[0].bytes, 3);
  EXPECT_ERROR(read_done("{\"../a\": {\"bytes\": 3, \"sha256\": \"ab\"}}"), DataError,
               "\"../a\" is no name of a file");
  EXPECT_ERROR(read_done("{\"a\": {\"bytes\": 3}}"), DataError, "DONE is damaged");
  EXPECT_ERROR(read_done("{\"a\""), DataError, "DONE is damaged");
}

TEST(HeldCheckpoints, TheNewestAndTheBestByEachMetricAreChosen) {
  const std::set<int64_t> best = read_best_steps(
      R"({"validation": [{"metric": "bleu", "best": [{"step": 10}, {"step": 20}]},
                         {"metric": "chrf", "best": [{"step": 40}]},
                         {"metric": "loss", "best": []}]})");
  EXPECT_EQ(best, (std::set<int64_t>{10, 40}));
  std::vector<HeldCheckpoint> held;
  for (int64_t step : {10, 20, 30}) held.push_back({.host = "a", .step = step, .best_steps = {20}});
  held.push_back({.host = "b", .step = 35, .best_steps = best});
  EXPECT_EQ(choose_steps(held, CheckpointChoice::kNewestAndBest), (std::set<int64_t>{10, 35}))
      << "40 is nowhere any more";
  EXPECT_EQ(choose_steps(held, CheckpointChoice::kAll), (std::set<int64_t>{10, 20, 30, 35}));
  EXPECT_TRUE(choose_steps(held, CheckpointChoice::kNone).empty());
  EXPECT_TRUE(choose_steps({}, CheckpointChoice::kNewestAndBest).empty());
}

}  // namespace
}  // namespace lockstep
