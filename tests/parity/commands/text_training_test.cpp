// lockstep train on texts against the loop of transformers' Trainer in PyTorch: the same data,
// weights and order give the same losses and gradient norms, with one rank and with two.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "support/python.h"
#include "support/tiny_texts.h"

namespace lockstep {
namespace {

TEST(TextTraining, FollowsTransformersTrainer) {
  for (const char* module : {"transformers", "safetensors"}) {
    if (!python_has(module)) GTEST_SKIP() << "needs the Python package " << module;
  }
  TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  write_tiny_bert(folder, 2);
  ASSERT_EQ(prepare_tiny_texts(folder), "");
  write_tiny_text_config(folder);
  const PythonResult theirs = run_parity_script(
      "bert_models.py",
      fmt::format("train {0}/model {0}/train.tsv {0}/losses.txt", folder.string()));
  ASSERT_EQ(theirs.status, 0) << theirs.errors;
  std::vector<std::pair<double, double>> expected;  // loss and gradient norm
  std::istringstream lines(read_file(folder / "losses.txt"));
  for (double loss, norm; lines >> loss >> norm;) expected.emplace_back(loss, norm);
  ASSERT_EQ(expected.size(), 20u);
  EXPECT_GT(std::abs(expected.front().first - expected.back().first), 0.01);  // the weights move
  for (int ranks : {1, 2}) {
    const std::string run = fmt::format("{}/run{}", folder.string(), ranks);
    std::string command =
        fmt::format("train {}/tiny.toml run.folder={} batch.order=file", folder.string(), run);
    if (ranks > 1) command = fmt::format("launch -n {} -- {}", ranks, command);
    const ProgramResult trained = run_lockstep(command, "OMP_NUM_THREADS=1");
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    const auto steps = metrics_of(run, "step");
    ASSERT_EQ(steps.size(), expected.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      // fp32 on both sides with sums in another order, which training amplifies from step to step.
      const double tolerance = 2e-5 + 2e-5 * static_cast<double>(i);
      const auto [loss, norm] = expected[i];
      EXPECT_NEAR(steps[i].at("train/loss").get<double>(), loss, tolerance * loss)
          << ranks << " ranks, step " << i + 1;
      EXPECT_NEAR(steps[i].at("train/gradient_norm").get<double>(), norm, 10 * tolerance * norm)
          << ranks << " ranks, step " << i + 1;
    }
  }
}

}  // namespace
}  // namespace lockstep
