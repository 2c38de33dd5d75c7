// Whole runs of the built program on a tiny corpus: what must hold whatever the number of ranks,
// interruptions and threads.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/digest.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

class TrainTest : public TinyRuns {
 protected:
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> out;
    for (const auto& step : metrics_of(run(name), "step")) out.push_back(step.at("train/loss"));
    return out;
  }

  std::string weights_hash(const std::string& name, int step) const {
    return sha256_of_file(run(name) / "checkpoints" / fmt::format("step_{}", step) /
                          "weights.safetensors");
  }
};

// The step averages over the same sentences in each case; only the order of fp32 additions differs.
// After 20 steps of Adam, which divides by the root of tiny second moments, 2e-3 of the loss is
// what rounding (6e-8 at the first step) may have grown to; a wrong average is off by 10 % at once.
TEST_F(TrainTest, OneRankTwoRanksAndTwoMicroBatchesGiveTheSameLosses) {
  ASSERT_EQ(train("one", 1, "model.dropout=0").exit_code, 0);
  ASSERT_EQ(train("two", 2, "model.dropout=0").exit_code, 0);
  ASSERT_EQ(train("accumulated", 1, "model.dropout=0 batch.accumulate=2").exit_code, 0);
  std::vector<double> one = losses("one"), two = losses("two"), parts = losses("accumulated");
  ASSERT_EQ(one.size(), 20u);
  ASSERT_EQ(two.size(), 20u);
  ASSERT_EQ(parts.size(), 20u);
  EXPECT_LT(one.back(), 0.9 * one.front());
  for (std::size_t i = 0; i < one.size(); ++i) {
    double tolerance = i == 0 ? 1e-5 : 2e-3;
    EXPECT_NEAR(two[i], one[i], tolerance * one[i]) << "step " << i + 1;
    EXPECT_NEAR(parts[i], one[i], tolerance * one[i]) << "step " << i + 1;
  }
}

// Masks are functions of the sentence, not of its place in a batch.
TEST_F(TrainTest, DropoutDoesNotDependOnTheNumberOfRanks) {
  ASSERT_EQ(train("drop1", 1, "model.dropout=0.3 training.steps=5").exit_code, 0);
  ASSERT_EQ(train("drop2", 2, "model.dropout=0.3 training.steps=5").exit_code, 0);
  std::vector<double> one = losses("drop1"), two = losses("drop2");
  ASSERT_EQ(one.size(), 5u);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-3 * one[i]);
}

TEST_F(TrainTest, SameSeedGivesTheSameBits) {
  ASSERT_EQ(train("bits1", 1, "training.steps=6").exit_code, 0);
  ASSERT_EQ(train("bits2", 1, "training.steps=6").exit_code, 0);
  EXPECT_EQ(weights_hash("bits1", 6), weights_hash("bits2", 6));
  ASSERT_EQ(train("bits3", 1, "training.steps=6 run.seed=2").exit_code, 0);
  EXPECT_NE(weights_hash("bits1", 6), weights_hash("bits3", 6));
}

TEST_F(TrainTest, ResumeIsBitExact) {
  std::string words = "schedule.name=constant training.average_decay=0.9 run.precision=bf16";
  ASSERT_EQ(train("whole", 2, words + " training.steps=12").exit_code, 0);
  ASSERT_EQ(train("halves", 2, words + " training.steps=7").exit_code, 0);
  ProgramResult resumed = train("halves", 2, words + " training.steps=12 --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("resumed from"), std::string::npos) << resumed.errors;
  for (const char* file : {"weights", "average", "optimizer"}) {
    auto hash = [&](const char* name) {
      return sha256_of_file(run(name) / "checkpoints/step_12" /
                            fmt::format("{}.safetensors", file));
    };
    EXPECT_EQ(hash("whole"), hash("halves")) << file;
  }
}

TEST_F(TrainTest, ShardedOptimizerGivesTheSameBitsAndFitsAnyRun) {
  std::string words = "schedule.name=constant training.average_decay=0.9 run.precision=bf16";
  std::string sharded = words + " training.shard_optimizer=true";
  ASSERT_EQ(train("unsharded", 2, words + " training.steps=8").exit_code, 0);
  ASSERT_EQ(train("sharded", 2, sharded + " training.steps=5").exit_code, 0);
  ProgramResult resumed = train("sharded", 2, words + " training.steps=6 --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  ASSERT_EQ(train("sharded", 2, sharded + " training.steps=8 --resume").exit_code, 0);
  for (const char* file : {"weights", "average", "optimizer"}) {
    auto hash = [&](const char* name) {
      return sha256_of_file(run(name) / "checkpoints/step_8" / fmt::format("{}.safetensors", file));
    };
    EXPECT_EQ(hash("unsharded"), hash("sharded")) << file;
  }
}

TEST_F(TrainTest, PassesOverADamagedCheckpointAndSaysSo) {
  std::string words = "training.steps=6 checkpoint.every=3";
  ASSERT_EQ(train("damaged", 1, words).exit_code, 0);
  fs::path newest = run("damaged") / "checkpoints/step_6/weights.safetensors";
  std::string bytes = read_file(newest);
  bytes[bytes.size() / 2] ^= 1;
  write_file(newest, bytes);
  ProgramResult resumed = train("damaged", 1, "training.steps=8 --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("step_6 is passed over: weights.safetensors has another hash"),
            std::string::npos)
      << resumed.errors;
  EXPECT_NE(resumed.errors.find("checkpoints/step_3"), std::string::npos) << resumed.errors;
}

TEST_F(TrainTest, SigtermSavesACheckpointAndExits143) {
  std::string command = fmt::format(
      "train {0}/tiny.toml run.folder={1} training.steps=1000000 training.progress_every=1",
      folder_->path().string(), run("stopped").string());
  // The shell tells the program to stop once it has taken a step.
  std::string stopper = fmt::format(
      "for i in $(seq 600); do grep -q '\"step\":3,' {0}/metrics.jsonl 2>/dev/null && break; "
      "sleep 0.1; done; pkill -TERM -n -f -- '[l]ockstep train .*run.folder={0} '",
      run("stopped").string());
  std::string before = fmt::format("({}) >/dev/null 2>&1 & OMP_NUM_THREADS=1", stopper);
  ProgramResult result = run_lockstep(command, before);
  EXPECT_EQ(result.exit_code, 143) << result.errors;
  auto saved = metrics_of(run("stopped"), "checkpoint");
  ASSERT_FALSE(saved.empty());
  fs::path checkpoint = run("stopped") / "checkpoints" / saved.back().at("name");
  EXPECT_TRUE(fs::exists(checkpoint / "DONE"));
}

TEST_F(TrainTest, KilledRankEndsTheJobWithExitCodeFour) {
  std::string stopper = fmt::format(
      "for i in $(seq 600); do grep -q '\"step\":3,' {0}/metrics.jsonl 2>/dev/null && break; "
      "sleep 0.1; done; pkill -KILL -o -f -- '[l]ockstep train .*run.folder={0} '",
      run("killed").string());
  ProgramResult result = train("killed", 2, "training.steps=1000000",
                               fmt::format("({}) >/dev/null 2>&1 & OMP_NUM_THREADS=1", stopper));
  EXPECT_EQ(result.exit_code, 4) << result.errors;
  EXPECT_NE(result.errors.find("SIGKILL"), std::string::npos) << result.errors;
  std::string left =
      fmt::format("pgrep -f -- '[l]ockstep train .*run.folder={} '", run("killed").string());
  EXPECT_NE(std::system((left + " >/dev/null").c_str()), 0) << "a process was left behind";
}

TEST_F(TrainTest, NamesAPortThatIsTaken) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  int port = ntohs(address.sin_port);
  ProgramResult result = train("port", 1, "",
                               fmt::format("RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 "
                                           "MASTER_ADDR=127.0.0.1 MASTER_PORT={}",
                                           port));
  close(listener);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.errors.find(fmt::format("cannot listen on 127.0.0.1:{}", port)),
            std::string::npos)
      << result.errors;
  EXPECT_TRUE(fs::exists(run("port") / "logs/rank00.error"));
}

// A mistake put right needs no other folder; a run that trained is not touched.
TEST_F(TrainTest, ARunThatFailedBeforeItsFirstStepMakesRoom) {
  ProgramResult failed = train("room", 2, "training.steps=2 data.corpus=/nowhere");
  EXPECT_EQ(failed.exit_code, 3) << failed.errors;
  EXPECT_TRUE(fs::exists(run("room") / "config.toml"));
  // The launcher stops a rank that prepares still when the other one has failed.
  const auto has_error = [this](int rank) {
    return fs::exists(run("room") / fmt::format("logs/rank{:02}.error", rank));
  };
  EXPECT_TRUE(has_error(0) || has_error(1));
  ProgramResult trained = train("room", 2, "training.steps=2");
  EXPECT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_NE(trained.errors.find("makes room"), std::string::npos) << trained.errors;
  EXPECT_EQ(read_file(run("room") / "config.toml").find("/nowhere"), std::string::npos);
  EXPECT_FALSE(has_error(0) || has_error(1));
  const std::string metrics = read_file(run("room") / "metrics.jsonl");
  write_file(run("room") / "logs/rank00.error", "error: of another day\n");
  ProgramResult refused = train("room", 2, "training.steps=2");
  EXPECT_EQ(refused.exit_code, 2) << refused.errors;
  EXPECT_NE(refused.errors.find("already holds a run"), std::string::npos) << refused.errors;
  EXPECT_EQ(read_file(run("room") / "metrics.jsonl"), metrics);
}

TEST_F(TrainTest, LearnsTheTinyLanguageAndEvaluatesAlikeForAnyNumberOfRanks) {
  ProgramResult trained =
      train("learnt", 2,
            "training.steps=1000 evaluation.every=500 training.average_decay=0.98 "
            "model.dropout=0 optimizer.lr=8e-3 schedule.warmup_steps=100");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  ProgramResult one = run_lockstep("evaluate " + run("learnt").string());
  ProgramResult two = run_lockstep("launch -n 2 -- evaluate " + run("learnt").string());
  EXPECT_EQ(one.exit_code, 0) << one.errors;
  EXPECT_EQ(one.output.substr(0, one.output.find("  loss")),
            two.output.substr(0, two.output.find("  loss")));
  std::size_t at = one.output.find(" = ");
  ASSERT_NE(at, std::string::npos) << one.output;
  EXPECT_GT(std::stod(one.output.substr(at + 3)), 60.0) << one.output;

  write_file(run("in.txt"), "one two three\n\nten nine\n");
  std::string command =
      fmt::format("'{}' translate {} < {} > {} 2>/dev/null", LOCKSTEP_PROGRAM,
                  run("learnt").string(), run("in.txt").string(), run("out.txt").string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::vector<std::string> lines = read_lines(run("out.txt"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "eins zwei drei");
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines[2], "zehn neun");
}

TEST_F(TrainTest, LeavesACompleteRunFolder) {
  ASSERT_EQ(train("complete", 2, "training.steps=4").exit_code, 0);
  for (const char* name :
       {"config.toml", "version.txt", "metrics.jsonl", "subword.model", "corpus.json",
        "logs/rank00.log", "logs/rank01.log", "checkpoints/step_4/weights.safetensors",
        "checkpoints/step_4/optimizer.safetensors", "checkpoints/step_4/state.json",
        "checkpoints/step_4/DONE"}) {
    EXPECT_TRUE(fs::exists(run("complete") / name)) << name;
  }
  EXPECT_FALSE(fs::is_empty(run("complete") / "events"));
  auto steps = metrics_of(run("complete"), "step");
  ASSERT_EQ(steps.size(), 4u);
  for (const auto& step : steps) {
    double parts = step.at("time/compute_seconds").get<double>() +
                   step.at("time/wait_seconds").get<double>() +
                   step.at("time/data_seconds").get<double>();
    EXPECT_NEAR(parts, step.at("time/step_seconds").get<double>(), 1e-6);
    EXPECT_GT(step.at("comm/sent_bytes").get<double>(), 0);
  }
  // The saved configuration is a configuration.
  ProgramResult again =
      run_lockstep("train " + (run("complete") / "config.toml").string() + " --dry-run");
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(again.output, read_file(run("complete") / "config.toml"));
}

}  // namespace
}  // namespace lockstep
