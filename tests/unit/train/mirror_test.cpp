#include "train/mirror/mirror.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/expect_error.h"
#include "support/s3_environment.h"
#include "train/folder/checkpoint_folder.h"
#include "train/mirror/mirror_reading.h"

namespace lockstep {
namespace {

constexpr const char* kBucket = "s3://bucket/run";

// A run folder with invented checkpoints, and a bucket for its mirror.
class MirrorTest : public ::testing::Test {
 protected:
  MirrorTest()
      : run(top.path() / "run"), s3((fs::create_directories(bucket()), top.path() / "s3")) {
    run.create("[run]\n", "lockstep\n");
    write_file(run.metrics(), "{\"event\": \"start\"}\n{\"half a li");
  }
  fs::path bucket() const { return top.path() / "s3" / "bucket"; }
  fs::path mirrored(int64_t step) const {
    return bucket() / "run" / "checkpoints" / checkpoint_name(step);
  }
  // Writes a checkpoint in which `best` was the best so far.
  void save(int64_t step, int64_t best, std::size_t bytes = 1000) const {
    write_checkpoint(run.checkpoints(), step, [&](const fs::path& aside) {
      write_file(aside / "weights.safetensors", std::string(bytes, static_cast<char>('a' + step)));
      const nlohmann::ordered_json state = {
          {"step", step},
          {"epoch", 0},
          {"step_in_epoch", step},
          {"targets_seen", 0},
          {"evaluated_step", step},
          {"validation",
           {{{"metric", "loss"}, {"stalled", 0}, {"best", {{{"step", best}, {"value", 1.0}}}}}}}};
      write_file(aside / "state.json", state.dump());
      return WrittenFiles{};
    });
  }
  MirrorOptions options() const {
    return {.address = kBucket,
            .keep = 1,
            .wait_seconds = 20,
            .first_pause = std::chrono::milliseconds(20)};
  }
  nlohmann::json said() const {
    return nlohmann::json::parse(read_file(run.path() / "mirror.json"));
  }
  void wait_for_request(const std::string& part) const {
    for (int i = 0; i < 2000; ++i) {
      for (const std::string& line : s3.server().requests()) {
        if (line.find(part) != std::string::npos) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "no request with " << part;
  }

  TemporaryFolder top;
  RunFolder run;
  S3Environment s3;
};

TEST_F(MirrorTest, KeepsTheNewestAndTheBestAndTheRunsFiles) {
  save(1, 1);
  {
    Mirror mirror(options(), run);
    for (const int64_t step : {2, 3, 4}) {
      save(step, 2);
      mirror.add_checkpoint(step);
      remove_old_checkpoints(run.checkpoints(), 1, {});
    }
    EXPECT_TRUE(mirror.finish(false));
  }
  EXPECT_EQ(checkpoint_damage(mirrored(4)), "");
  for (const int64_t gone : {1, 3}) {  // the server keeps empty folders
    EXPECT_FALSE(fs::exists(mirrored(gone) / "DONE"));
    EXPECT_FALSE(fs::exists(mirrored(gone) / "weights.safetensors"));
  }
  EXPECT_EQ(read_file(bucket() / "run" / "config.toml"), "[run]\n");
  EXPECT_EQ(read_file(bucket() / "run" / "metrics.jsonl"), "{\"event\": \"start\"}\n");
  EXPECT_FALSE(fs::exists(bucket() / "run" / "mirror.json"));
  EXPECT_FALSE(fs::exists(run.path() / ".mirror"));
  const nlohmann::json state = said();
  EXPECT_EQ(state["address"], kBucket);
  EXPECT_EQ(state["newest"], "step_4");
  EXPECT_EQ(state["complete"], true);
  EXPECT_EQ(state["error"], "");
}

TEST_F(MirrorTest, CopiesACheckpointThatTheRunRemovesMeanwhile) {
  s3.server().set_faults(
      R"({"bucket/run/checkpoints/step_1/weights.safetensors": [{"method": "PUT", "slow": 0.2}]})");
  save(1, 1, 300'000);
  Mirror mirror(options(), run);
  wait_for_request("PUT bucket/run/checkpoints/step_1/state.json");  // the weights are under way
  fs::remove_all(run.checkpoints() / "step_1");
  EXPECT_TRUE(mirror.finish(false));
  EXPECT_EQ(checkpoint_damage(mirrored(1)), "");
}

TEST_F(MirrorTest, TriesAgainAndSendsNothingTwice) {
  s3.server().set_faults(
      R"({"bucket/run/checkpoints/step_1/weights.safetensors":
          [{"method": "PUT", "status": 503, "code": "SlowDown"}, {"method": "PUT", "cut": 100},
           {"method": "PUT", "status": 400, "code": "ExpiredToken"},
           {"method": "PUT", "damage": true}]})");
  save(1, 1);
  Mirror mirror(options(), run);
  EXPECT_TRUE(mirror.finish(false));
  EXPECT_EQ(checkpoint_damage(mirrored(1)), "");
  int states = 0;
  for (const std::string& line : s3.server().requests()) {
    states += line.starts_with("PUT bucket/run/checkpoints/step_1/state.json");
  }
  EXPECT_EQ(states, 1);
  std::string problems;
  for (const MirrorNews& news : mirror.take_news()) problems += news.error + "\n";
  EXPECT_NE(problems.find("SlowDown"), std::string::npos) << problems;
  EXPECT_NE(problems.find("have expired"), std::string::npos) << problems;
  EXPECT_NE(problems.find("MD5"), std::string::npos) << problems;
}

TEST_F(MirrorTest, GivesUpAtItsLimitAndTheNextProcessGoesOn) {
  s3.server().set_faults(R"({"*": [{"method": "PUT", "status": 507, "times": 1000}]})");
  save(1, 1);
  MirrorOptions hasty = options();
  hasty.wait_seconds = 0.3;
  {
    Mirror mirror(hasty, run);
    for (int i = 0; i < 2000 && mirror.take_news().empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // until the first failure
    }
    EXPECT_FALSE(mirror.finish(true));
  }
  EXPECT_EQ(said()["complete"], false);
  EXPECT_NE(said()["error"].get<std::string>().find("it is full"), std::string::npos);
  s3.server().set_faults("{}");
  Mirror mirror(options(), run);
  EXPECT_TRUE(mirror.finish(false));
  EXPECT_EQ(said()["newest"], "step_1");
}

TEST_F(MirrorTest, RefusesAnotherRun) {
  save(1, 1);
  EXPECT_TRUE(Mirror(options(), run).finish(false));
  check_mirror(kBucket, run, false);
  const RunFolder other(top.path() / "other");
  EXPECT_ERROR(check_mirror(kBucket, other, false), ConfigError, "holds another run");
  check_mirror(kBucket, other, true);  // it goes on with that run
  other.create("[run]\n", "lockstep\n");
  write_file(other.path() / "run.json", "{\"run\": \"other\"}");
  EXPECT_ERROR(check_mirror(kBucket, other, true), ConfigError, "holds another run");
  EXPECT_ERROR(check_mirror("s3://absent/run", run, false), ConfigError, "no bucket");
}

TEST_F(MirrorTest, ReadsWhatArrivesWholeAndPassesOverTheRest) {
  save(1, 1);
  save(2, 1);
  MirrorOptions both = options();
  both.keep = 2;
  EXPECT_TRUE(Mirror(both, run).finish(false));
  const fs::path here = top.path() / "here";
  MirroredRun there(kBucket);
  EXPECT_EQ(there.steps(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(there.fetch_chosen(here, "best").filename(), "step_1");
  EXPECT_EQ(there.fetch_chosen(here, "newest").filename(), "step_2");
  EXPECT_ERROR(there.fetch_chosen(here, "step_3"), DataError, "did you mean");
  EXPECT_EQ(checkpoint_damage(here / "checkpoints" / "step_2"), "");
  // A byte of the newest changed in the mirror.
  std::string weights = read_file(mirrored(2) / "weights.safetensors");
  weights[500] ^= 1;
  write_file(mirrored(2) / "weights.safetensors", weights);
  const std::optional<fs::path> newest = there.fetch_newest(top.path() / "fresh");
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->filename(), "step_1");
  EXPECT_FALSE(there.fetch_newest(top.path() / "fresh", 2));
  EXPECT_ERROR(MirroredRun("s3://bucket/empty"), ConfigError, "no run is there");
}

}  // namespace
}  // namespace lockstep
