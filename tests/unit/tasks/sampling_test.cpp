#include "tasks/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "models/decoder.h"
#include "models/packing.h"
#include "support/tiny_transformer.h"

namespace lockstep {
namespace {

using Ids = std::vector<int32_t>;

const SpecialIds kSpecial{0, 1, 2, 3};

TEST(SampleToken, FollowsTheDistribution) {
  const std::vector<float> logits{9, 1, 0, 9, 2, -1, 1.5};
  const std::vector<int32_t> excluded{0, 3};
  for (double temperature : {1.0, 0.5}) {
    SamplingOptions options;
    options.temperature = temperature;
    std::map<int32_t, int> counts;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      const double uniform = static_cast<double>(combine_keys(1, i) >> 11) * 0x1p-53;
      ++counts[sample_token(logits.data(), 7, options, excluded, uniform)];
    }
    double sum = 0;
    for (int32_t id : {1, 2, 4, 5, 6}) sum += std::exp(logits[id] / temperature);
    for (int32_t id : {1, 2, 4, 5, 6}) {
      const double p = std::exp(logits[id] / temperature) / sum;
      // Five standard deviations of a share of 20,000 draws.
      EXPECT_NEAR(counts[id] / double{kDraws}, p, 5 * std::sqrt(p * (1 - p) / kDraws)) << id;
    }
    EXPECT_EQ(counts.size(), 5u);
  }
}

std::set<int32_t> drawn(const std::vector<float>& logits, const SamplingOptions& options) {
  std::set<int32_t> ids;
  for (double u = 0; u < 1; u += 1e-3) {
    ids.insert(sample_token(logits.data(), std::ssize(logits), options, {}, u));
  }
  return ids;
}

TEST(SampleToken, KeepsToTheMostLikelyAndToTheNucleus) {
  const std::vector<float> logits{std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};
  EXPECT_EQ(drawn(logits, {.top_k = 1}), (std::set<int32_t>{1}));
  EXPECT_EQ(drawn(logits, {.top_k = 3}), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(drawn(logits, {.top_k = 9}), (std::set<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(drawn(logits, {.top_p = 0.35}), (std::set<int32_t>{1}));
  EXPECT_EQ(drawn(logits, {.top_p = 0.65}), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(drawn(logits, {.top_p = 0.95}), (std::set<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(drawn(logits, {.top_k = 3, .top_p = 0.65}), (std::set<int32_t>{1, 3}));
}

TEST(SampleToken, AlmostFrozenIsTheMostLikely) {
  EXPECT_EQ(drawn({1, 3, 2.9f}, {.temperature = 1e-3}), (std::set<int32_t>{1}));
}

struct Samples {
  Samples() : packed(pack_transformer(tiny.model, WeightFormat::kFp32)) {}
  std::vector<std::vector<Hypothesis>> draw(const std::vector<Ids>& sources, int64_t count,
                                            int64_t batch_tokens = 1000, int64_t seed = 1) const {
    BeamOptions options;
    options.batch_tokens = batch_tokens;
    SamplingOptions sampling;
    sampling.seed = seed;
    return sample_translations(decoding_model(tiny.model, {}, &packed), sources, kSpecial, options,
                               sampling, count);
  }
  TinyTransformer tiny;
  PackedTransformer packed;
};

TEST(SampleTranslations, DependOnTheSentenceTheSeedAndTheirNumberAlone) {
  at::set_num_threads(1);
  const Samples net;
  std::vector<Ids> sources = random_sentences({4, 7, 2, 5}, 23);
  const auto together = net.draw(sources, 3);
  at::set_num_threads(2);
  const auto apart = net.draw(sources, 3, 8);
  at::set_num_threads(1);
  const auto one = net.draw({sources[2]}, 2);
  std::set<Ids> different;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(apart[i][k].ids, together[i][k].ids);
      different.insert(together[i][k].ids);
    }
  }
  EXPECT_GT(different.size(), 9u);
  EXPECT_EQ(one[0][0].ids, together[2][0].ids);
  EXPECT_EQ(one[0][1].ids, together[2][1].ids);
  EXPECT_NE(net.draw(sources, 1, 1000, 2)[0][0].ids, together[0][0].ids);
}

TEST(SampleTranslations, KeepToTheLengthLimitAndGiveEmptySourcesNothing) {
  const Samples net;
  const auto got = net.draw({{}, {5, 6}}, 4);
  ASSERT_EQ(got[0].size(), 1u);
  EXPECT_TRUE(got[0][0].ids.empty());
  ASSERT_EQ(got[1].size(), 4u);
  for (const Hypothesis& h : got[1]) {
    EXPECT_LE(h.ids.size(), 14u);  // 2 * 2 + 10
    EXPECT_LT(h.log_probability, 0);
    for (int32_t id : h.ids) EXPECT_GE(id, 4);
  }
}

}  // namespace
}  // namespace lockstep
