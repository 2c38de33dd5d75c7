#include "train/parts/validation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "train/folder/run_position.h"

namespace lockstep {
namespace {

const std::vector<MetricKind> kKinds = {{"bleu", true}, {"loss", false}};

Evaluation evaluation(double bleu, double loss) {
  return {.metrics = {{"bleu", bleu}, {"loss", loss}}};
}

std::vector<int64_t> steps_of(const MetricHistory& history) {
  std::vector<int64_t> out;
  for (const RankedStep& best : history.best) out.push_back(best.step);
  return out;
}

TEST(Validation, KeepsTheBestOfEachMetricInItsDirection) {
  Validation v = watch_metrics({}, {"bleu", "loss"});
  ValidationRules rules{.keep_best = 2};
  EXPECT_EQ(note_evaluation(v, 10, evaluation(5, 4), kKinds, rules).improved,
            (std::vector<std::string>{"bleu", "loss"}));
  Verdict second = note_evaluation(v, 20, evaluation(7, 4.5), kKinds, rules);
  EXPECT_EQ(second.improved, (std::vector<std::string>{"bleu"}));
  EXPECT_TRUE(second.among_best);
  EXPECT_FALSE(note_evaluation(v, 30, evaluation(5, 4.5), kKinds, rules).among_best)
      << "equals of earlier ones come after them";
  EXPECT_EQ(note_evaluation(v, 40, evaluation(6, 3), kKinds, rules).improved,
            (std::vector<std::string>{"loss"}));
  EXPECT_EQ(steps_of(v[0]), (std::vector<int64_t>{20, 40}));
  EXPECT_EQ(steps_of(v[1]), (std::vector<int64_t>{40, 10}));
  EXPECT_EQ(best_steps(v), (std::set<int64_t>{10, 20, 40}));
  EXPECT_EQ(best_text(v), "bleu 7 at step 20, loss 3 at step 40");
}

TEST(Validation, CountsStalledEvaluationsAndForgetsThemWhenItImproves) {
  Validation v = watch_metrics({}, {"bleu", "loss"});
  note_evaluation(v, 1, evaluation(5, 4), kKinds, {});
  note_evaluation(v, 2, evaluation(5, 3), kKinds, {});
  note_evaluation(v, 3, evaluation(4, 3), kKinds, {});
  EXPECT_EQ(v[0].stalled, 2);
  EXPECT_EQ(v[1].stalled, 1);
  EXPECT_TRUE(patience_is_over(v, {.patience = 2, .stalled = "first"}));
  EXPECT_TRUE(patience_is_over(v, {.patience = 2, .stalled = "any"}));
  EXPECT_FALSE(patience_is_over(v, {.patience = 2, .stalled = "all"}));
  EXPECT_FALSE(patience_is_over(v, {.patience = 3, .stalled = "any"}));
  EXPECT_FALSE(patience_is_over(v, {.patience = 0, .stalled = "any"}));
  note_evaluation(v, 4, evaluation(6, 3), kKinds, {});
  EXPECT_EQ(v[0].stalled, 0);
  EXPECT_TRUE(patience_is_over(v, {.patience = 2, .stalled = "any"})) << "the loss still stalls";
}

TEST(Validation, SmallGainsDoNotReset) {
  Validation v = watch_metrics({}, {"bleu"});
  ValidationRules rules{.keep_best = 3, .min_improvement = 0.5};
  note_evaluation(v, 1, evaluation(5, 0), kKinds, rules);
  EXPECT_TRUE(note_evaluation(v, 2, evaluation(5.4, 0), kKinds, rules).improved.empty());
  EXPECT_EQ(v[0].stalled, 1);
  EXPECT_EQ(v[0].best.front().step, 1) << "what later ones are measured by";
  EXPECT_FALSE(note_evaluation(v, 3, evaluation(5.6, 0), kKinds, rules).improved.empty());
  EXPECT_EQ(v[0].stalled, 0);
}

TEST(Validation, NotANumberIsNeverTheBest) {
  Validation v = watch_metrics({}, {"loss"});
  EXPECT_FALSE(note_evaluation(v, 1, evaluation(0, std::nan("")), kKinds, {}).among_best);
  EXPECT_TRUE(note_evaluation(v, 2, evaluation(0, 3), kKinds, {}).among_best);
  EXPECT_FALSE(note_evaluation(v, 3, evaluation(0, std::nan("")), kKinds, {}).among_best);
  EXPECT_EQ(steps_of(v[0]), (std::vector<int64_t>{2}));
}

TEST(Validation, ChangedMetricsKeepWhatIsKnown) {
  Validation v = watch_metrics({}, {"bleu", "loss"});
  note_evaluation(v, 1, evaluation(5, 4), kKinds, {});
  Validation changed = watch_metrics(v, {"loss", "chrf"});
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(steps_of(changed[0]), (std::vector<int64_t>{1}));
  EXPECT_EQ(changed[1].metric, "chrf");
  EXPECT_TRUE(changed[1].best.empty());
}

TEST(RunPosition, ComesBackFromItsJson) {
  RunPosition p{
      .step = 12, .epoch = 3, .step_in_epoch = 4, .targets_seen = 99, .evaluated_step = 10};
  p.validation = {{.metric = "loss", .best = {{10, 1.25}, {5, 1.5}}, .stalled = 2}};
  RunPosition back = position_from_json(to_json(p));
  EXPECT_EQ(to_json(back), to_json(p));
  EXPECT_EQ(back.validation[0].best[1].value, 1.5);
  EXPECT_EQ(back.evaluated_step, 10);
}

}  // namespace
}  // namespace lockstep
