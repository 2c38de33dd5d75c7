// Whole runs of the built program: evaluation over ranks, interruptions and what a run begins with.
#include <gtest/gtest.h>

#include "formats/tensor_file.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

class ModesTest : public TinyRuns {
 protected:
  // For the shell, before the program: sends SIGTERM to the newest process that trains into
  // run(name) once step `step` is in its metrics.
  std::string stop_after(const std::string& name, int step) const {
    return fmt::format(
        "(for i in $(seq 600); do grep -q '\"step\":{},' {}/metrics.jsonl 2>/dev/null && break; "
        "sleep 0.05; done; pkill -TERM -n -f -- '[l]ockstep train .*run.folder={} ') "
        ">/dev/null 2>&1 & OMP_NUM_THREADS=1",
        step, run(name).string(), run(name).string());
  }

  std::map<int, double> losses(const std::string& name) const {
    std::map<int, double> out;  // a resumed run may repeat steps: the later line counts
    for (const auto& step : metrics_of(run(name), "step")) {
      out[step.at("step")] = step.at("train/loss");
    }
    return out;
  }

  std::vector<float> weight(const std::string& name, int step, const std::string& tensor) const {
    TensorFile file(run(name) / "checkpoints" / fmt::format("step_{}", step) /
                    "weights.safetensors");
    const TensorEntry& entry = file.get(tensor);
    std::vector<float> out(entry.data.size() / sizeof(float));
    std::memcpy(out.data(), entry.data.data(), entry.data.size());
    return out;
  }

  nlohmann::json state(const std::string& name, int step) const {
    return nlohmann::json::parse(
        read_file(run(name) / "checkpoints" / fmt::format("step_{}", step) / "state.json"));
  }
};

// 30 sentences over 3 ranks, 4 over 5, 1 over 2: neither duplicates nor hangs, and no digit
// differs.
TEST_F(ModesTest, EvaluationHasTheSameDigitsForAnyNumberOfRanks) {
  ASSERT_EQ(train("digits", 1, "training.steps=150 run.precision=bf16").exit_code, 0);
  auto evaluate = [&](int ranks, const std::string& words) {
    std::string command = "evaluate " + run("digits").string() + " --split dev " + words;
    if (ranks > 1) command = fmt::format("launch -n {} -- {}", ranks, command);
    ProgramResult result = run_lockstep(command, "OMP_NUM_THREADS=1");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result.output;
  };
  std::string one = evaluate(1, "--samples 30");
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 1 + 3 * 30);
  EXPECT_EQ(evaluate(2, "--samples 30"), one);
  EXPECT_EQ(evaluate(3, "--samples 30"), one);
  EXPECT_EQ(evaluate(5, "--limit 4 --samples 4"), evaluate(1, "--limit 4 --samples 4"));
  EXPECT_EQ(evaluate(2, "--limit 1"), evaluate(1, "--limit 1"));
}

// The metrics in the file have all digits of a double.
TEST_F(ModesTest, EvaluationDuringTrainingHasTheSameDigitsForAnyNumberOfRanks) {
  ASSERT_EQ(train("begin", 1, "training.steps=100").exit_code, 0);
  std::string words =
      fmt::format("training.steps=1 evaluation.every=1 optimizer.lr=1e-30 run.load_model={}",
                  run("begin").string());
  std::vector<std::string> found;
  for (int ranks : {1, 2, 3}) {
    std::string name = fmt::format("eval{}", ranks);
    ProgramResult result = train(name, ranks, words);
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    nlohmann::json line = metrics_of(run(name), "evaluation").at(0);
    line.erase("time");
    line.erase("seconds");
    found.push_back(line.dump());
  }
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
}

TEST_F(ModesTest, KeepsTheBestOfEachMetricBesideTheNewest) {
  ProgramResult result = train("kept", 1,
                               "training.steps=12 evaluation.every=2 checkpoint.keep=1 "
                               "evaluation.metrics='[\"accuracy\",\"loss\"]' optimizer.lr=0.5");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  nlohmann::json newest = state("kept", 12);
  std::set<std::string> expected = {"step_12"};
  for (const nlohmann::json& history : newest.at("validation")) {
    double best = history.at("best").at(0).at("value");
    expected.insert(fmt::format("step_{}", history.at("best").at(0).at("step").get<int>()));
    std::string metric = history.at("metric");
    for (const nlohmann::json& line : metrics_of(run("kept"), "evaluation")) {
      double value = line.at("eval/" + metric);
      EXPECT_TRUE(metric == "loss" ? best <= value : best >= value) << metric;
    }
  }
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(run("kept") / "checkpoints")) {
    found.insert(entry.path().filename().string());
  }
  EXPECT_EQ(found, expected);
}

// A learning rate of next to nothing cannot improve by 0.5: the second evaluation stalls, the third
// ends the run, interrupted or not.
TEST_F(ModesTest, StopsEarlyAndKnowsItAfterAResume) {
  std::string words =
      "evaluation.every=2 evaluation.metrics='[\"loss\"]' evaluation.patience=2 "
      "evaluation.min_improvement=0.5 optimizer.lr=1e-9 checkpoint.every=1 ";
  ProgramResult whole = train("early", 1, words + "training.steps=100");
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_NE(whole.errors.find("no improvement in 2 evaluations: loss"), std::string::npos)
      << whole.errors;
  EXPECT_EQ(metrics_of(run("early"), "step").size(), 6u);
  EXPECT_EQ(metrics_of(run("early"), "end").at(0).at("reason"), "patience");

  ASSERT_EQ(train("early2", 1, words + "training.steps=4").exit_code, 0);
  ProgramResult resumed = train("early2", 1, words + "training.steps=100 --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_EQ(state("early2", 6).at("validation").at(0).at("stalled"), 2);
  EXPECT_EQ(metrics_of(run("early2"), "end").back().at("reason"), "patience");
}

// Stopped in the middle of an epoch, with micro-batches, by a signal; then gone on with until the
// end: as if nothing had been. Four ways to compute a step differ by rounding only.
TEST_F(ModesTest, GoesOnAtTheExactSentenceAfterASignalWhateverTheRanks) {
  std::string words =
      "batch.accumulate=2 training.progress_every=1 training.epochs=4 training.steps=0 ";
  ASSERT_EQ(train("straight", 1, words).exit_code, 0);
  std::map<int, double> expected = losses("straight");
  ASSERT_GT(expected.size(), 40u);

  ProgramResult stopped = train("stopped", 1, words + "run.device=cpu ", stop_after("stopped", 7));
  EXPECT_EQ(stopped.exit_code, 143) << stopped.errors;
  auto first = metrics_of(run("stopped"), "step");
  EXPECT_LT(first.size(), expected.size()) << "it ended before the signal came";
  ASSERT_EQ(train("stopped", 1, words + "--resume").exit_code, 0);
  EXPECT_EQ(losses("stopped"), expected) << "the same bits with the same ranks";

  stopped = train("stopped2", 2, words, stop_after("stopped2", 7));
  EXPECT_EQ(stopped.exit_code, 143) << stopped.errors;
  ASSERT_EQ(train("stopped2", 1, words + "--resume batch.accumulate=3").exit_code, 0);
  std::map<int, double> found = losses("stopped2");
  ASSERT_EQ(found.size(), expected.size());
  std::map<int, int> targets, targets2;
  for (const auto& step : metrics_of(run("straight"), "step")) {
    targets[step.at("step")] = step.at("batch/targets");
  }
  for (const auto& step : metrics_of(run("stopped2"), "step")) {
    targets2[step.at("step")] = step.at("batch/targets");
  }
  EXPECT_EQ(targets2, targets) << "the same sentences in every step";
  // Rounding grows through Adam's division, as in OneRankTwoRanksAndTwoMicroBatches...
  for (const auto& [step, loss] : expected) EXPECT_NEAR(found[step], loss, 1e-2 * loss) << step;
}

TEST_F(ModesTest, FreezesWeightsThroughDecayAndAverage) {
  std::string words =
      "training.freeze='[\"embedding.*\",\"encoder.*norm.*\"]' optimizer.name=adamw "
      "optimizer.weight_decay=0.1 training.average_decay=0.5 checkpoint.every=2 checkpoint.keep=9 ";
  ASSERT_EQ(train("frozen", 2, words + "training.steps=2").exit_code, 0);
  ProgramResult resumed = train("frozen", 2, words + "training.steps=6 --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_EQ(weight("frozen", 2, "embedding.weight"), weight("frozen", 6, "embedding.weight"));
  EXPECT_EQ(weight("frozen", 2, "encoder.norm.weight"), weight("frozen", 6, "encoder.norm.weight"));
  EXPECT_NE(weight("frozen", 2, "decoder.norm.weight"), weight("frozen", 6, "decoder.norm.weight"));
  TensorFile average(run("frozen") / "checkpoints/step_6/average.safetensors");
  std::vector<float> kept = weight("frozen", 6, "embedding.weight");
  EXPECT_EQ(std::memcmp(average.get("embedding.weight").data.data(), kept.data(),
                        kept.size() * sizeof(float)),
            0);
}

TEST_F(ModesTest, FitsMicroBatchesToMemoryWithoutChangingAStep) {
  std::string words = "batch.tokens=2048 training.steps=5 model.dropout=0 ";
  ASSERT_EQ(train("roomy", 1, words).exit_code, 0);
  ProgramResult fitted =
      train("fitted", 2, words + "training.fit_memory=true training.fit_megabytes=2.5");
  ASSERT_EQ(fitted.exit_code, 0) << fitted.errors;
  EXPECT_NE(fitted.errors.find("micro-batches fitted to 2.5 MB a rank"), std::string::npos)
      << fitted.errors;
  std::string config = read_file(run("fitted") / "config.toml");
  EXPECT_EQ(config.find("accumulate = 1\n"), std::string::npos);
  EXPECT_FALSE(fs::exists(run("fitted") / "config.1.toml"));
  std::map<int, double> expected = losses("roomy"), found = losses("fitted");
  ASSERT_EQ(found.size(), 5u);
  for (const auto& [step, loss] : expected) EXPECT_NEAR(found[step], loss, 2e-3 * loss) << step;
}

// A copy of the state beside a step would take the room that the micro-batches were fitted to.
TEST_F(ModesTest, CheckpointsLeaveFittedMicroBatchesTheirMemory) {
  const ProgramResult fitted =
      train("fitted-saved", 1,
            "batch.tokens=512 training.steps=30 model.d_model=128 model.feed_forward=256 "
            "checkpoint.every=1 training.fit_memory=true training.fit_megabytes=14");
  ASSERT_EQ(fitted.exit_code, 0) << fitted.errors;
  EXPECT_NE(fitted.errors.find("micro-batches fitted to 14.0 MB"), std::string::npos)
      << fitted.errors;
  EXPECT_EQ(fitted.errors.find("not enough memory"), std::string::npos) << fitted.errors;
}

// mean = (a + 3 b) / 4, tensor by tensor.
TEST_F(ModesTest, AveragesCheckpointsByTheirShares) {
  ASSERT_EQ(train("parts", 1, "training.steps=4 checkpoint.every=2").exit_code, 0);
  std::string folder = (run("parts") / "checkpoints").string();
  ProgramResult averaged = run_lockstep(fmt::format(
      "average {0}/step_2 {0}/step_4/ --shares 1,3 --out {1}", folder, run("mean").string()));
  ASSERT_EQ(averaged.exit_code, 0) << averaged.errors;
  for (const char* tensor : {"embedding.weight", "decoder.0.cross.query.bias"}) {
    std::vector<float> a = weight("parts", 2, tensor), b = weight("parts", 4, tensor);
    std::vector<float> mean = weight("mean", 4, tensor);
    ASSERT_EQ(mean.size(), a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(mean[i], static_cast<float>(0.25 * double{a[i]} + 0.75 * double{b[i]})) << tensor;
    }
  }
  EXPECT_EQ(run_lockstep("evaluate " + run("mean").string()).exit_code, 0);
  ProgramResult next = train("next", 1, "training.steps=1 run.load_model=" + run("mean").string());
  EXPECT_NE(next.errors.find("from " + run("mean").string()), std::string::npos) << next.errors;
}

}  // namespace
}  // namespace lockstep
