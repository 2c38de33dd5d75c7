#include "tasks/scoring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "nn/cross_entropy.h"
#include "nn/embedding.h"
#include "support/tiny_transformer.h"

namespace lockstep {
namespace {

using Ids = std::vector<int32_t>;

const SpecialIds kScoredSpecial{0, 1, 2, 3};

// Pairs of several lengths, one with an empty target; enough for more than one batch of scoring.
std::vector<PairIds> some_pairs() {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 120; ++i) lengths.push_back(1 + (i * 7) % 23);
  const std::vector<Ids> sources = random_sentences(lengths, 23, 3);
  std::reverse(lengths.begin(), lengths.end());
  const std::vector<Ids> targets = random_sentences(lengths, 23, 4);
  std::vector<PairIds> pairs;
  for (std::size_t i = 0; i < sources.size(); ++i) pairs.push_back({sources[i], targets[i]});
  pairs[5].target.clear();
  return pairs;
}

// The nll of one pair as training computes it; with a zero start that of <s> is in it.
double training_nll(const TinyTransformer& tiny, const PairIds& pair, const Numerics& numerics) {
  torch::NoGradGuard no_grad;
  const bool zero = tiny.model.config().starts_with_zero();
  Ids source = pair.source, in{kScoredSpecial.bos};
  std::vector<int64_t> out(pair.target.begin(), pair.target.end());
  if (zero) {
    source.insert(source.begin(), kScoredSpecial.bos);
    in.insert(in.begin(), static_cast<int32_t>(kZeroToken));
    out.insert(out.begin(), kScoredSpecial.bos);
  }
  source.push_back(kScoredSpecial.eos);
  in.insert(in.end(), pair.target.begin(), pair.target.end());
  out.push_back(kScoredSpecial.eos);
  ForwardContext context;
  context.numerics = numerics;
  const torch::Tensor hidden = tiny.model.forward(translation_input({source}, {in}), context);
  return smoothed_cross_entropy(hidden, tiny.model.table(), torch::tensor(out, torch::kInt64), 0.1,
                                numerics)
      .nll.item<double>();
}

double total(const std::vector<float>& log_probability) {
  return std::accumulate(log_probability.begin(), log_probability.end(), 0.0);
}

TEST(ScorePairs, GivesTheLossOfTrainingPairByPair) {
  const TinyTransformer tiny;
  const std::vector<PairIds> pairs = some_pairs();
  for (bool fused : {false, true}) {
    const Numerics numerics{at::kFloat, fused};
    const auto scores = score_pairs(tiny.model, pairs, kScoredSpecial, numerics);
    ASSERT_EQ(scores.size(), pairs.size());
    for (std::size_t i = 0; i < pairs.size(); i += 5) {
      EXPECT_EQ(scores[i].size(), pairs[i].target.size() + 1);
      // fp32 sums of up to 24 logarithms of about -3.
      EXPECT_NEAR(-total(scores[i]), training_nll(tiny, pairs[i], numerics), 1e-3) << i;
    }
  }
}

TEST(ScorePairs, LeavesOutTheStartThatAZeroVectorPredicts) {
  TransformerConfig config = TinyTransformer::tiny_config();
  config.start = "zero";
  const TinyTransformer tiny(config);
  const std::vector<PairIds> pairs{{{5, 6, 7}, {8, 9}}, {{5}, {}}};
  const auto scores = score_pairs(tiny.model, pairs, kScoredSpecial, {});
  EXPECT_EQ(scores[0].size(), 3u);
  EXPECT_EQ(scores[1].size(), 1u);
  const double difference = training_nll(tiny, pairs[0], {}) + total(scores[0]);
  EXPECT_GT(difference, 0) << "-log p(<s>) is all that is missing";
  const double other =
      training_nll(tiny, {pairs[0].source, {}}, {}) +
      total(score_pairs(tiny.model, {{pairs[0].source, {}}}, kScoredSpecial, {})[0]);
  EXPECT_NEAR(difference, other, 1e-4);  // the same whatever follows
}

}  // namespace
}  // namespace lockstep
