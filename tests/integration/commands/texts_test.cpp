// Classification of texts end to end: training, evaluation, export, use.
#include <gtest/gtest.h>

#include <cmath>

#include "support/tiny_texts.h"

namespace lockstep {
namespace {

class Texts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    write_tiny_bert(folder_->path(), 2);
    failure_ = prepare_tiny_texts(folder_->path());
    write_tiny_text_config(folder_->path());
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  void SetUp() override { ASSERT_EQ(failure_, ""); }

  fs::path run(const std::string& name) const { return folder_->path() / name; }

  ProgramResult train(const std::string& name, int ranks, const std::string& words) const {
    std::string train = fmt::format("train {}/tiny.toml run.folder={} {}", folder_->path().string(),
                                    run(name).string(), words);
    if (ranks > 1) train = fmt::format("launch -n {} -- {}", ranks, train);
    return run_lockstep(train, "OMP_NUM_THREADS=1");
  }

  inline static TemporaryFolder* folder_ = nullptr;
  inline static std::string failure_;
};

const std::string kLearn =
    "training.steps=0 training.epochs=6 evaluation.every_epochs=2 "
    "'evaluation.metrics=[\"accuracy\",\"f1_macro\"]' model.hidden_dropout_prob=0.1 ";

TEST_F(Texts, AreLearnedEvaluatedExportedAndClassified) {
  const ProgramResult trained = train("learn", 1, kLearn);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_NE(trained.errors.find("a BERT of 3 layers and width 32"), std::string::npos)
      << trained.errors;
  const auto evaluations = metrics_of(run("learn"), "evaluation");
  ASSERT_EQ(evaluations.size(), 3u);
  EXPECT_GE(evaluations[2].at("eval/accuracy").get<double>(), 0.8) << trained.errors;
  for (const char* name : {"f1", "precision", "recall", "f1_macro", "f1_weighted", "f1_micro"}) {
    EXPECT_TRUE(evaluations[2].contains("eval/" + std::string(name))) << name;
  }
  const auto epochs = metrics_of(run("learn"), "epoch");
  ASSERT_EQ(epochs.size(), 6u);
  EXPECT_EQ(epochs[1].at("steps"), 20);
  EXPECT_TRUE(epochs[1].contains("eval/accuracy"));
  EXPECT_FALSE(epochs[2].contains("eval/accuracy"));
  const std::vector<std::string> table = read_lines(run("learn") / "epochs.csv");
  ASSERT_EQ(table.size(), 7u);
  EXPECT_TRUE(
      table[0].starts_with("epoch,step,steps,train_loss,train_accuracy,learning_rate,"
                           "train_seconds,samples_per_second,eval_accuracy,eval_f1,"))
      << table[0];
  EXPECT_TRUE(table[2].starts_with("1,40,20,")) << table[2];

  const std::string folder = run("learn").string();
  const ProgramResult evaluated = run_lockstep("evaluate --by-class --samples 1 " + folder);
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_NE(evaluated.output.find("validation  accuracy "), std::string::npos) << evaluated.output;
  EXPECT_NE(evaluated.output.find("recall %"), std::string::npos) << evaluated.output;
  EXPECT_NE(evaluated.output.find("source     w"), std::string::npos) << evaluated.output;

  const std::string out = run("exported").string();
  ASSERT_EQ(run_lockstep(fmt::format("export {} --out {}", folder, out)).exit_code, 0);
  const std::string words = " --json --top 1 'w11 w12 w13 w14' 'w21 w22 w23 w24'";
  const ProgramResult classified = run_lockstep("classify " + folder + words);
  EXPECT_EQ(classified.exit_code, 0) << classified.errors;
  const auto first =
      nlohmann::json::parse(classified.output.substr(0, classified.output.find('\n')));
  EXPECT_EQ(first.at("text"), "w11 w12 w13 w14");
  EXPECT_EQ(first.at("classes")[0].at("name"), "1");
  EXPECT_EQ(run_lockstep("classify " + out + words).output, classified.output);
  const ProgramResult again = run_lockstep(
      fmt::format("evaluate {} texts.data={}", out, (folder_->path() / "data").string()));
  EXPECT_EQ(again.output, evaluated.output.substr(0, evaluated.output.find('\n') + 1))
      << again.errors;
}

// Rounding alone: the same dropout, the same order.
TEST_F(Texts, TwoRanksLearnAsOne) {
  ASSERT_EQ(train("one", 1, "model.hidden_dropout_prob=0.1").exit_code, 0);
  ASSERT_EQ(train("two", 2, "model.hidden_dropout_prob=0.1 batch.per_rank=2").exit_code, 0);
  ASSERT_EQ(train("parts", 1, "model.hidden_dropout_prob=0.1 batch.accumulate=2").exit_code, 0);
  const auto one = metrics_of(run("one"), "step");
  for (const char* other : {"two", "parts"}) {
    const auto steps = metrics_of(run(other), "step");
    ASSERT_EQ(steps.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      const double expected = one[i].at("train/loss").get<double>();
      EXPECT_NEAR(steps[i].at("train/loss").get<double>(), expected, 1e-3 * expected)
          << other << " step " << i + 1;
    }
  }
}

// Also where the model that it began with is gone.
TEST_F(Texts, ResumeBitByBit) {
  const std::string words = "training.steps=10 model.hidden_dropout_prob=0.1 checkpoint.every=5 ";
  ASSERT_EQ(train("whole", 1, words).exit_code, 0);
  const fs::path begun = run("begun-with");
  fs::copy(folder_->path() / "model", begun);
  ASSERT_EQ(train("halves", 1, words + "model.source=" + begun.string()).exit_code, 0);
  fs::remove_all(begun);
  fs::remove_all(run("halves") / "checkpoints/step_10");
  const ProgramResult resumed = run_lockstep(
      fmt::format("train {}/config.toml --resume", run("halves").string()), "OMP_NUM_THREADS=1");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_EQ(read_file(run("halves") / "checkpoints/step_10/weights.safetensors"),
            read_file(run("whole") / "checkpoints/step_10/weights.safetensors"));
}

TEST_F(Texts, NumbersAreLearnedToo) {
  TemporaryFolder other;
  write_tiny_bert(other.path(), 1);
  ASSERT_EQ(prepare_tiny_texts(other.path(), /*values=*/true), "");
  write_tiny_text_config(other.path());
  const std::string command = fmt::format(
      "train {0}/tiny.toml run.folder={0}/run training.steps=120 "
      "evaluation.every=120 ",
      other.path().string());
  const ProgramResult wrong = run_lockstep(command, "OMP_NUM_THREADS=1");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.errors.find("evaluation.metrics: accuracy is not measured where numbers are"),
            std::string::npos)
      << wrong.errors;
  fs::remove_all(other.path() / "run");
  const ProgramResult trained =
      run_lockstep(command + "'evaluation.metrics=[\"pearson\"]'", "OMP_NUM_THREADS=1");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const auto evaluations = metrics_of(other.path() / "run", "evaluation");
  ASSERT_EQ(evaluations.size(), 1u);
  EXPECT_GT(evaluations[0].at("eval/pearson").get<double>(), 0.6);
  EXPECT_TRUE(evaluations[0].contains("eval/spearman"));
  const ProgramResult used =
      run_lockstep(fmt::format("classify {}/run --json 'w11 w12'", other.path().string()));
  EXPECT_EQ(used.exit_code, 0) << used.errors;
  EXPECT_TRUE(nlohmann::json::parse(used.output).at("value").is_number()) << used.output;
}

TEST_F(Texts, SayWhatDoesNotFit) {
  auto expect = [&](const std::string& words, int code, const std::string& text) {
    const ProgramResult result = train("wrong", 1, words);
    fs::remove_all(run("wrong"));
    EXPECT_EQ(result.exit_code, code) << result.errors;
    EXPECT_NE(result.errors.find(text), std::string::npos) << result.errors;
  };
  expect("model.source=nowhere", 3, "nowhere: there is no such folder");
  expect("model.source=some/where", 3, "hf:some/where for a model of the Hugging Face hub");
  expect("model.source=hf:a/b/c", 2, "expected hf:OWNER/NAME");
  expect("texts.positive=great evaluation.every=20", 2, "texts.positive: no class \"great\"");
  expect("model.source= model.hidden_size=30 model.num_attention_heads=4", 2,
         "hidden_size 30 does not divide into 4 heads");
  fs::path other = folder_->path() / "other";
  fs::copy(folder_->path() / "model", other, fs::copy_options::recursive);
  auto json = nlohmann::json::parse(read_file(other / "config.json"));
  json["vocab_size"] = 40;
  write_file(other / "config.json", json.dump());
  expect("model.source=" + other.string(), 3, "50");
  json["vocab_size"] = 50;
  write_file(other / "config.json", json.dump());
  const std::string weights = read_file(other / "model.safetensors");
  write_file(other / "model.safetensors", weights.substr(0, weights.size() / 2));
  expect("model.source=" + other.string(), 3, "model.safetensors");
}

}  // namespace
}  // namespace lockstep
