#include "metrics/bleu.h"

#include <fmt/ranges.h>
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "metrics/ngram_counter.h"

namespace lockstep {

namespace {

constexpr const char* kSemantics = "2.6.0";  // the version of sacreBLEU that is followed
constexpr double kLogOfZero = -9999999999;   // sacreBLEU's: its exponential is 0

struct Smoothing {
  std::optional<double> default_value;  // of the parameter; none when it takes none
};

const Catalogue<Smoothing>& smoothings() {
  static const Catalogue<Smoothing> catalogue = [] {
    Catalogue<Smoothing> r("smoothing");
    r.add("exp", {}, "halve a pretended match at each order without one (method 3)");
    r.add("floor", {0.1}, "pretend a small number of matches (method 1)");
    r.add("add-k", {1.0}, "add to matches and totals beyond order 1 (method 2)");
    r.add("none", {}, "an order without a match makes the score 0");
    return r;
  }();
  return catalogue;
}

double log_or_floor(double value) { return value == 0 ? kLogOfZero : std::log(value); }

}  // namespace

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
  hypothesis_tokens += other.hypothesis_tokens;
  reference_tokens += other.reference_tokens;
  for (int n = 0; n < kBleuMaxOrder; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  return *this;
}

std::array<int64_t, BleuStatistics::kValues> BleuStatistics::values() const {
  std::array<int64_t, kValues> out{hypothesis_tokens, reference_tokens};
  std::copy(matches.begin(), matches.end(), out.begin() + 2);
  std::copy(totals.begin(), totals.end(), out.begin() + 2 + kBleuMaxOrder);
  return out;
}

BleuStatistics BleuStatistics::from_values(std::span<const int64_t, kValues> values) {
  BleuStatistics out;
  out.hypothesis_tokens = values[0];
  out.reference_tokens = values[1];
  std::copy_n(values.begin() + 2, kBleuMaxOrder, out.matches.begin());
  std::copy_n(values.begin() + 2 + kBleuMaxOrder, kBleuMaxOrder, out.totals.begin());
  return out;
}

double BleuScore::length_ratio() const {
  if (statistics.reference_tokens == 0) return 0;
  return static_cast<double>(statistics.hypothesis_tokens) /
         static_cast<double>(statistics.reference_tokens);
}

Bleu::Bleu(const BleuConfig& config)
    : config_(config), tokenizer_(bleu_tokenizers().get(config.tokenizer)) {
  const Smoothing& smoothing = smoothings().get(config.smoothing);
  if (!config_.smoothing_value) config_.smoothing_value = smoothing.default_value;
  if (config.max_order < 1 || config.max_order > kBleuMaxOrder) {
    throw ConfigError("BLEU: max_order {}: expected 1 to {}", config.max_order, kBleuMaxOrder);
  }
}

std::string Bleu::prepare(const std::string& segment) const {
  if (!config_.lowercase) return tokenizer_(strip_right(segment));
  std::string lower;
  icu::UnicodeString::fromUTF8(segment).toLower(icu::Locale::getRoot()).toUTF8String(lower);
  return tokenizer_(strip_right(lower));
}

BleuStatistics Bleu::segment_statistics(const std::string& hypothesis,
                                        const std::vector<std::string>& references) const {
  std::vector<std::vector<std::string>> sets;
  for (const std::string& reference : references) sets.push_back({reference});
  return corpus_statistics({hypothesis}, sets);
}

BleuStatistics Bleu::corpus_statistics(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references) const {
  if (references.empty()) throw DataError("BLEU: no references");
  for (const std::vector<std::string>& set : references) {
    if (set.size() == hypotheses.size()) continue;
    throw DataError("BLEU: {} hypotheses but {} references", hypotheses.size(), set.size());
  }
  NgramCounter counter;
  BleuStatistics out;
  std::vector<std::string> prepared(references.size());
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    for (std::size_t r = 0; r < references.size(); ++r) prepared[r] = prepare(references[r][i]);
    std::string hypothesis = prepare(hypotheses[i]);
    out += counter.count(hypothesis, prepared, config_.max_order);
  }
  return out;
}

BleuScore Bleu::score(const BleuStatistics& statistics) const {
  BleuScore out;
  out.statistics = statistics;
  out.precisions.assign(static_cast<std::size_t>(config_.max_order), 0.0);
  auto length = static_cast<double>(statistics.hypothesis_tokens);
  auto reference = static_cast<double>(statistics.reference_tokens);
  out.brevity_penalty = length >= reference ? 1.0
                        : length > 0        ? std::exp(1 - reference / length)
                                            : 0;
  bool any = std::any_of(statistics.matches.begin(), statistics.matches.end(),
                         [](int64_t count) { return count != 0; });
  if (!any) return out;

  double halvings = 1;
  int orders = config_.max_order;
  for (int n = 0; n < config_.max_order; ++n) {
    auto matches = static_cast<double>(statistics.matches[n]);
    auto total = static_cast<double>(statistics.totals[n]);
    if (config_.smoothing == "add-k" && n > 0) {
      matches += *config_.smoothing_value;
      total += *config_.smoothing_value;
    }
    if (total == 0) break;
    if (config_.effective_order) orders = n + 1;
    if (matches == 0 && config_.smoothing == "exp") matches = 1 / (halvings *= 2);
    if (matches == 0 && config_.smoothing == "floor") matches = *config_.smoothing_value;
    out.precisions[n] = 100 * matches / total;
  }
  double sum = 0;
  for (int n = 0; n < orders; ++n) sum += log_or_floor(out.precisions[n]);
  out.score = out.brevity_penalty * std::exp(sum / orders);
  return out;
}

std::string Bleu::signature(int reference_count) const {
  std::string smoothing = config_.smoothing;
  if (smoothings().get(smoothing).default_value) {
    smoothing += fmt::format("[{:.2f}]", *config_.smoothing_value);
  }
  return fmt::format("nrefs:{}|case:{}|eff:{}|tok:{}|smooth:{}|version:{}", reference_count,
                     config_.lowercase ? "lc" : "mixed", config_.effective_order ? "yes" : "no",
                     config_.tokenizer, smoothing, kSemantics);
}

std::string Bleu::format(const BleuScore& score, int reference_count, int decimals) const {
  return fmt::format(
      "BLEU|{} = {:.{}f} {:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
      signature(reference_count), score.score, decimals, fmt::join(score.precisions, "/"),
      score.brevity_penalty, score.length_ratio(), score.statistics.hypothesis_tokens,
      score.statistics.reference_tokens);
}

}  // namespace lockstep
