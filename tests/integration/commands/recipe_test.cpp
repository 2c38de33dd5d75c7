// The recipe of OpenSeq2Seq as it stands in configs/, made small: it trains, learns and translates.
#include <gtest/gtest.h>

#include "support/program.h"
#include "support/tiny_corpus.h"

namespace lockstep {
namespace {

TEST(FaithfulRecipe, LearnsOnTwoRanksAndTranslates) {
  TemporaryFolder folder;
  ASSERT_EQ(make_tiny_corpus(folder.path()), "");
  const std::string run = (folder.path() / "run").string();
  const ProgramResult trained = run_lockstep(
      fmt::format(
          "launch -n 2 -- train {}/configs/translation/transformer-base-openseq2seq.toml "
          "run.folder={} run.device=cpu data.corpus={}/corpus model.d_model=32 model.heads=2 "
          "model.encoder_layers=1 model.decoder_layers=1 model.feed_forward=64 "
          "batch.sentences=40 batch.longest=12 optimizer.lr=0.5 schedule.warmup_steps=40 "
          "training.steps=80 evaluation.every=0",
          LOCKSTEP_SOURCE, run, folder.path().string()),
      "OMP_NUM_THREADS=1");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const auto steps = metrics_of(run, "step");
  ASSERT_EQ(steps.size(), 80u);
  const double first = steps.front().at("train/loss"), last = steps.back().at("train/loss");
  // 0 would be perfect. 1.6 nats: <s>, </s> and the alphabet of the numbers are learned by then.
  EXPECT_GT(last, 0);
  EXPECT_LT(last, 0.6 * first);

  const ProgramResult scored = run_lockstep(
      fmt::format("evaluate {0} --source {1}/test.en --reference {1}/test.de --output {1}/out", run,
                  folder.path().string()),
      "OMP_NUM_THREADS=1");
  ASSERT_EQ(scored.exit_code, 0) << scored.errors;
  const std::vector<std::string> lines = read_lines(folder.path() / "out");
  EXPECT_EQ(lines.size(), 30u);
  for (const std::string& line : lines) {
    EXPECT_EQ(line.find("<s>"), std::string::npos) << line;  // predicted first, and kept out
  }
}

}  // namespace
}  // namespace lockstep
