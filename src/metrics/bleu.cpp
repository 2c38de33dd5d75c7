#include "metrics/bleu.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "metrics/line_text.h"
#include "metrics/ngram_counter.h"

namespace lockstep {

namespace {

constexpr double kLogOfZero = -9999999999;  // as in sacreBLEU: its exponential is 0

struct Smoothing {
  std::optional<double> default_value;  // of the parameter; none if it has no parameter
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

// Computes precisions in `Real`, with sacreBLEU's operations in the same order.
template <typename Real>
BleuScore compute(const BleuConfig& config, const BleuStatistics& statistics,
                  Arithmetic arithmetic) {
  BleuScore out;
  out.statistics = statistics;
  out.precisions.assign(static_cast<std::size_t>(config.max_order), 0.0);
  auto length = static_cast<double>(statistics.hypothesis_tokens);
  auto reference = static_cast<double>(statistics.reference_tokens);
  out.brevity_penalty = length >= reference ? 1.0
                        : length > 0        ? std::exp(1 - reference / length)
                                            : 0;
  bool any = std::any_of(statistics.matches.begin(), statistics.matches.end(),
                         [](int64_t count) { return count != 0; });
  if (!any) return out;

  const double smoothing = config.smoothing_value.value_or(0);
  // numpy adds only the integer part to an array of integers, as approximate randomization has.
  const Real added =
      static_cast<Real>(arithmetic == Arithmetic::kInteger ? std::trunc(smoothing) : smoothing);
  Real halvings = 1;
  int orders = config.max_order;
  for (int n = 0; n < config.max_order; ++n) {
    auto matches = static_cast<Real>(statistics.matches[n]);
    auto total = static_cast<Real>(statistics.totals[n]);
    if (config.smoothing == "add-k" && n > 0) {
      matches += added;
      total += added;
    }
    if (total == 0) break;
    if (config.effective_order) orders = n + 1;
    if (matches != 0) {
      out.precisions[n] = 100 * matches / total;
    } else if (config.smoothing == "exp") {
      out.precisions[n] = 100 / ((halvings *= 2) * total);
    } else if (config.smoothing == "floor") {
      out.precisions[n] = static_cast<Real>(100 * smoothing) / total;
    }
  }
  double sum = 0;
  for (int n = 0; n < orders; ++n) sum += log_or_floor(out.precisions[n]);
  out.score = out.brevity_penalty * std::exp(sum / orders);
  return out;
}

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
  return tokenizer_(strip_right(lower_case(segment)));
}

BleuStatistics Bleu::segment_statistics(const std::string& hypothesis,
                                        const std::vector<std::string>& references) const {
  std::vector<std::vector<std::string>> sets;
  sets.reserve(references.size());
  for (const std::string& reference : references) sets.push_back({reference});
  return corpus_statistics({hypothesis}, sets);
}

BleuStatistics Bleu::corpus_statistics(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references) const {
  return statistics_of(corpus_sums(*this, hypotheses, references));
}

BleuStatistics Bleu::statistics_of(std::span<const double> sums) const {
  BleuStatistics out;
  out.hypothesis_tokens = static_cast<int64_t>(sums[0]);
  out.reference_tokens = static_cast<int64_t>(sums[1]);
  for (int n = 0; n < config_.max_order; ++n) {
    out.matches[n] = static_cast<int64_t>(sums[2 + n]);
    out.totals[n] = static_cast<int64_t>(sums[2 + config_.max_order + n]);
  }
  return out;
}

std::vector<double> Bleu::statistics(const std::vector<std::string>& hypotheses,
                                     const std::vector<std::vector<std::string>>& references,
                                     std::size_t begin, std::size_t end) const {
  NgramCounter counter;
  std::vector<std::string> prepared(references.size());
  std::vector<double> out;
  out.reserve((end - begin) * value_count());
  for (std::size_t i = begin; i < end; ++i) {
    for (std::size_t r = 0; r < references.size(); ++r) prepared[r] = prepare(references[r][i]);
    std::string hypothesis = prepare(hypotheses[i]);
    BleuStatistics segment = counter.count(hypothesis, prepared, config_.max_order);
    out.push_back(static_cast<double>(segment.hypothesis_tokens));
    out.push_back(static_cast<double>(segment.reference_tokens));
    out.insert(out.end(), segment.matches.begin(), segment.matches.begin() + config_.max_order);
    out.insert(out.end(), segment.totals.begin(), segment.totals.begin() + config_.max_order);
  }
  return out;
}

BleuScore Bleu::score(const BleuStatistics& statistics) const {
  return compute<double>(config_, statistics, Arithmetic::kDouble);
}

MetricValue Bleu::value(std::span<const double> sums, Arithmetic arithmetic) const {
  BleuStatistics statistics = statistics_of(sums);
  // Precisions are float32 if the sums are. The score is made of their logarithms and never is.
  return {arithmetic == Arithmetic::kSingle
              ? compute<float>(config_, statistics, arithmetic).score
              : compute<double>(config_, statistics, arithmetic).score,
          false};
}

std::vector<SignaturePart> Bleu::signature_parts() const {
  std::string smoothing = config_.smoothing;
  if (smoothings().get(smoothing).default_value) {
    smoothing += fmt::format("[{:.2f}]", *config_.smoothing_value);
  }
  return {{"case", "c", config_.lowercase ? "lc" : "mixed"},
          {"eff", "e", config_.effective_order ? "yes" : "no"},
          {"tok", "tok", config_.tokenizer},
          {"smooth", "s", smoothing}};
}

std::string Bleu::signature(int reference_count) const {
  return signature_text(
      signature_of(*this, {.references = static_cast<std::size_t>(reference_count)}));
}

std::string Bleu::details_of(const BleuScore& score) {
  return fmt::format("{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
                     fmt::join(score.precisions, "/"), score.brevity_penalty, score.length_ratio(),
                     score.statistics.hypothesis_tokens, score.statistics.reference_tokens);
}

std::string Bleu::details(std::span<const double> sums) const {
  return details_of(score(statistics_of(sums)));
}

std::string Bleu::format(const BleuScore& score, int reference_count, int decimals) const {
  return fmt::format("BLEU|{} = {:.{}f} {}", signature(reference_count), score.score, decimals,
                     details_of(score));
}

}  // namespace lockstep
