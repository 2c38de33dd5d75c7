#include "decode/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "models/decoder.h"
#include "models/packing.h"
#include "support/tiny_transformer.h"

namespace lockstep {
namespace {

using torch::Tensor;
using Ids = std::vector<int32_t>;

constexpr int32_t kPad = 0, kEos = 1, kBos = 2, kUnk = 3;

// A network of few tokens whose output is far from uniform, so that searches differ.
struct Small {
  explicit Small(int64_t vocabulary, uint64_t seed = 3) {
    TransformerConfig config;
    config.d_model = 16;
    config.heads = 2;
    config.encoder_layers = config.decoder_layers = 1;
    config.feed_forward = 24;
    config.longest = 32;
    tiny = std::make_unique<TinyTransformer>(config, vocabulary, seed);
    torch::NoGradGuard no_grad;
    tiny->parameters.values().mul_(1.7);
    tiny->parameters.refresh_low();
  }
  const Transformer& model() const { return tiny->model; }

  // log p(next | source, prefix), [vocabulary], by a whole forward pass.
  const std::vector<double>& next(const Ids& source, const Ids& prefix) const {
    auto [entry, is_new] = known.try_emplace({source, prefix});
    if (is_new) entry->second = computed(source, prefix);
    return entry->second;
  }

  std::vector<double> computed(const Ids& source, const Ids& prefix) const {
    torch::NoGradGuard no_grad;
    Ids in = source, target{kBos};
    in.push_back(kEos);
    target.insert(target.end(), prefix.begin(), prefix.end());
    ForwardContext context;
    context.numerics.fused = false;
    const Tensor hidden = tiny->model.forward(translation_input({in}, {target}), context);
    const Tensor scores = tiny->model.logits(hidden, context.numerics)[-1].to(at::kDouble);
    const Tensor log_probability = scores.log_softmax(0).contiguous();
    const double* p = log_probability.data_ptr<double>();
    return {p, p + log_probability.numel()};
  }

  std::unique_ptr<TinyTransformer> tiny;
  mutable std::map<std::pair<Ids, Ids>, std::vector<double>> known;
};

bool producible(int32_t id) { return id != kPad && id != kBos && id != kUnk; }

double norm(std::size_t length, double penalty) {
  return std::pow((5.0 + static_cast<double>(length)) / 6.0, penalty);
}

int64_t limit(const Ids& source, const BeamOptions& options) {
  return static_cast<int64_t>(options.max_length_factor * static_cast<double>(source.size())) +
         options.max_length_extra;
}

Ids slow_greedy(const Small& net, const Ids& source, const BeamOptions& options) {
  Ids out;
  while (std::ssize(out) < limit(source, options)) {
    const std::vector<double> p = net.next(source, out);
    int32_t best = kEos;
    for (int32_t id = 0; id < std::ssize(p); ++id) {
      if (producible(id) && p[static_cast<std::size_t>(id)] > p[static_cast<std::size_t>(best)]) {
        best = id;
      }
    }
    if (best == kEos) break;
    out.push_back(best);
  }
  return out;
}

using Entry = std::pair<double, Ids>;

bool slow_done(const BeamOptions& options, const std::vector<Entry>& finished, std::size_t n,
               double now, double bound) {
  if (finished.size() < n) return false;
  const bool all = finished.size() == static_cast<std::size_t>(options.beam_size);
  const double nth = finished[n - 1].first, worst = finished.back().first;
  if (options.stop == "t2t") return worst >= bound;
  if (options.stop == "full") return all;
  if (options.stop == "first") return nth >= now || nth >= bound;
  if (options.stop == "bound") return nth >= bound;
  return nth >= bound || (all && worst >= now);
}

// The rules of beam_search.h, written as plainly as they are said there: the n best, by score.
std::vector<Entry> slow_beam(const Small& net, const Ids& source, const BeamOptions& options,
                             std::size_t n = 1) {
  const std::size_t k = static_cast<std::size_t>(options.beam_size);
  const int64_t longest = limit(source, options);
  auto better = [](const Entry& a, const Entry& b) { return a.first > b.first; };
  std::vector<Entry> live{{0.0, {}}}, finished;
  std::size_t length = 1;
  for (; std::ssize(live) > 0; ++length) {
    std::vector<Entry> all;
    for (const Entry& entry : live) {
      const std::vector<double> p = net.next(source, entry.second);
      for (int32_t id = 0; id < std::ssize(p); ++id) {
        if (!producible(id)) continue;
        Entry longer{entry.first + p[static_cast<std::size_t>(id)], entry.second};
        longer.second.push_back(id);
        all.push_back(longer);
      }
    }
    std::sort(all.begin(), all.end(), better);
    live.clear();
    for (std::size_t rank = 0; rank < std::min(2 * k, all.size()); ++rank) {
      if (all[rank].second.back() != kEos) {
        if (live.size() < k) live.push_back(all[rank]);
      } else if (rank < k || options.stop == "t2t") {
        finished.push_back({all[rank].first / norm(length, options.length_penalty),
                            Ids(all[rank].second.begin(), all[rank].second.end() - 1)});
      }
    }
    std::sort(finished.begin(), finished.end(), better);
    if (finished.size() > k) finished.resize(k);
    if (static_cast<int64_t>(length) >= longest) break;
    const double bound =
        live[0].first / norm(static_cast<std::size_t>(longest), options.length_penalty);
    const double now = live[0].first / norm(length, options.length_penalty);
    if (slow_done(options, finished, n, now, bound)) break;
  }
  for (const Entry& entry : live) {
    if (finished.size() >= n) break;
    finished.push_back({entry.first / norm(length, options.length_penalty), entry.second});
  }
  if (finished.size() > n) finished.resize(n);
  return finished;
}

class BeamSearch : public ::testing::TestWithParam<bool> {
 protected:
  BeamSearch() { at::set_num_threads(1); }  // nothing here is worth waking a thread

  std::vector<std::vector<Hypothesis>> search_n(const Small& net, const std::vector<Ids>& sources,
                                                const BeamOptions& options, int64_t n_best,
                                                at::ScalarType compute = at::kFloat) const {
    const PackedTransformer packed = pack_transformer(
        net.model(), compute == at::kFloat ? WeightFormat::kFp32 : WeightFormat::kBf16);
    const DecodingModel model =
        decoding_model(net.model(), {compute, false}, GetParam() ? &packed : nullptr);
    return beam_search(model, sources, {kPad, kEos, kBos, kUnk}, options, n_best);
  }
  std::vector<Hypothesis> search(const Small& net, const std::vector<Ids>& sources,
                                 const BeamOptions& options,
                                 at::ScalarType compute = at::kFloat) const {
    std::vector<Hypothesis> best;
    for (auto& of_sentence : search_n(net, sources, options, 1, compute)) {
      EXPECT_EQ(of_sentence.size(), 1u);
      best.push_back(of_sentence.front());
    }
    return best;
  }
};

TEST_P(BeamSearch, OfOneEqualsGreedyDecodingWithoutACache) {
  const Small net(17);
  const std::vector<Ids> sources = random_sentences({3, 8, 1, 5, 5, 2, 7, 4}, 17);
  BeamOptions options;
  options.beam_size = 1;
  const std::vector<Hypothesis> got = search(net, sources, options);
  std::set<std::size_t> lengths;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(got[i].ids, slow_greedy(net, sources[i], options)) << "sentence " << i;
    lengths.insert(got[i].ids.size());
  }
  EXPECT_GT(lengths.size(), 1u) << "the network is too dull to test with";
}

TEST_P(BeamSearch, EqualsAPlainBeamSearchWithoutACache) {
  const std::vector<Ids> sources = random_sentences({3, 6, 1, 4}, 13);
  for (uint64_t seed : {3, 4}) {
    const Small net(13, seed);
    for (int64_t beam : {2, 4}) {
      for (double penalty : {0.0, 0.6, 1.5}) {
        BeamOptions options;
        options.beam_size = beam;
        options.length_penalty = penalty;
        options.max_length_extra = 4;
        options.max_length_factor = 1;
        options.batch_tokens = 20;
        const std::vector<Hypothesis> got = search(net, sources, options);
        for (std::size_t i = 0; i < sources.size(); ++i) {
          const Entry want = slow_beam(net, sources[i], options).front();
          EXPECT_EQ(got[i].ids, want.second)
              << "sentence " << i << " beam " << beam << " penalty " << penalty << " seed " << seed;
          EXPECT_NEAR(got[i].score, want.first, 1e-4);  // fp32 against a double softmax
        }
      }
    }
  }
}

TEST_P(BeamSearch, StopsByEveryRuleAsAPlainSearchAndGivesTheNBest) {
  const std::vector<Ids> sources = random_sentences({3, 6, 1, 4}, 13);
  const Small net(13, 4);
  for (const char* stop : {"all_beams", "first", "bound", "t2t", "full"}) {
    for (int64_t n : {1, 3}) {
      BeamOptions options;
      options.stop = stop;
      options.beam_size = 3;
      options.max_length_extra = 5;
      options.max_length_factor = 1;
      const auto got = search_n(net, sources, options, n);
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const std::vector<Entry> want =
            slow_beam(net, sources[i], options, static_cast<std::size_t>(n));
        ASSERT_EQ(got[i].size(), want.size()) << stop << " " << n;
        for (std::size_t j = 0; j < want.size(); ++j) {
          EXPECT_EQ(got[i][j].ids, want[j].second) << stop << " " << n << " sentence " << i;
          EXPECT_NEAR(got[i][j].score, want[j].first, 1e-4);
        }
      }
    }
  }
}

TEST_P(BeamSearch, WideEnoughFindsTheBestOfAllSequences) {
  const Small net(7);  // three tokens beside the special ones
  BeamOptions options;
  options.beam_size = 81;  // 3^4: nothing is ever dropped
  options.max_length_factor = 0;
  options.max_length_extra = 5;
  const Ids source = random_sentences({4}, 7)[0];
  Hypothesis best;
  best.score = -1e30;
  std::vector<std::pair<Ids, double>> open{{{}, 0.0}};
  while (!open.empty()) {
    const auto [ids, log_probability] = open.back();
    open.pop_back();
    const std::vector<double> p = net.next(source, ids);
    const double ended = (log_probability + p[kEos]) / norm(ids.size() + 1, options.length_penalty);
    if (ended > best.score) best = {ids, ended, log_probability + p[kEos]};
    if (ids.size() + 1 >= 5) continue;
    for (int32_t id = 4; id < 7; ++id) {
      Ids longer = ids;
      longer.push_back(id);
      open.push_back({longer, log_probability + p[static_cast<std::size_t>(id)]});
    }
  }
  const Hypothesis got = search(net, {source}, options)[0];
  EXPECT_EQ(got.ids, best.ids);
  EXPECT_NEAR(got.score, best.score, 1e-4);
  EXPECT_NEAR(got.log_probability, best.log_probability, 1e-4);
}

TEST_P(BeamSearch, NeverProducesSpecialIds) {
  const Small net(9);
  const std::vector<Ids> sources = random_sentences({3, 8, 1, 5, 12, 6}, 9);
  for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    for (int64_t beam : {1, 3}) {
      BeamOptions options;
      options.beam_size = beam;
      options.min_length = 4;
      for (const Hypothesis& h : search(net, sources, options, compute)) {
        EXPECT_GE(h.ids.size(), 4u);
        for (int32_t id : h.ids) EXPECT_TRUE(id >= 4 && id < 9) << id;
        EXPECT_TRUE(std::isfinite(h.score));
      }
    }
  }
}

TEST_P(BeamSearch, KeepsToTheLengthLimit) {
  const Small net(17);
  BeamOptions options;
  options.min_length = 100;  // never ends by itself
  options.max_length_factor = 1.5;
  options.max_length_extra = 2;
  const std::vector<Ids> sources = random_sentences({3, 8}, 17);
  const std::vector<Hypothesis> got = search(net, sources, options);
  EXPECT_EQ(got[0].ids.size(), 6u);   // 1.5 * 3 + 2
  EXPECT_EQ(got[1].ids.size(), 14u);  // 1.5 * 8 + 2
}

TEST_P(BeamSearch, GivesAnEmptySourceAnEmptyTranslation) {
  const Small net(17);
  EXPECT_TRUE(search(net, {}, {}).empty());
  const std::vector<Hypothesis> got = search(net, {{}, {5, 6}, {}}, {});
  ASSERT_EQ(got.size(), 3u);
  EXPECT_TRUE(got[0].ids.empty());
  EXPECT_TRUE(got[2].ids.empty());
  EXPECT_EQ(got[0].score, 0);
  EXPECT_EQ(got[1].ids, search(net, {{5, 6}}, {})[0].ids);
}

TEST_P(BeamSearch, DoesNotDependOnBatchesOrThreads) {
  const Small net(17);
  const std::vector<Ids> sources = random_sentences({3, 8, 1, 5, 5, 2, 7, 4, 9, 9, 3, 6}, 17);
  BeamOptions options;
  const std::vector<Hypothesis> together = search(net, sources, options);
  options.batch_tokens = 12;
  for (int n : {1, 2}) {
    at::set_num_threads(n);
    const std::vector<Hypothesis> apart = search(net, sources, options);
    const std::vector<Hypothesis> again = search(net, sources, options);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EXPECT_EQ(apart[i].ids, together[i].ids) << i;
      // Packed weights: in no bit. Products of torch have sums that depend on their height.
      EXPECT_NEAR(apart[i].score, together[i].score, GetParam() ? 0 : 1e-4);
      EXPECT_EQ(apart[i].score, again[i].score);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BothWays, BeamSearch, testing::Bool(),
                         [](const auto& way) { return way.param ? "Fused" : "Plain"; });

}  // namespace
}  // namespace lockstep
