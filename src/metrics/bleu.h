// BLEU (Papineni et al. 2002) as sacreBLEU 2.6.0 computes and prints it (Post 2018).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/bleu_tokenizers.h"
#include "metrics/metric.h"

namespace lockstep {

inline constexpr int kBleuMaxOrder = 8;  // room for n-grams up to this length; 4 is usual

struct BleuConfig {
  std::string tokenizer = "13a";  // a name of bleu_tokenizers()
  bool lowercase = false;
  bool effective_order = false;  // stop at the longest n-gram the hypothesis has; for sentences
  // For orders without a match (Chen and Cherry 2014): "exp", "floor", "add-k" or "none".
  std::string smoothing = "exp";
  // Of floor (default 0.1) and add-k (default 1).
  std::optional<double> smoothing_value = std::nullopt;
  int max_order = 4;  // 1 to kBleuMaxOrder
};

// What BLEU needs to know of some segments. Statistics of disjoint sets of segments add up, so
// ranks may each count theirs and all-reduce values().
struct BleuStatistics {
  static constexpr std::size_t kValues = 2 + 2 * kBleuMaxOrder;
  int64_t hypothesis_tokens = 0;
  int64_t reference_tokens = 0;  // of the reference nearest in length, the shorter one of equals
  std::array<int64_t, kBleuMaxOrder> matches{};  // n-grams also in a reference; [0] is n = 1
  std::array<int64_t, kBleuMaxOrder> totals{};   // n-grams of the hypotheses

  BleuStatistics& operator+=(const BleuStatistics& other);
  bool operator==(const BleuStatistics&) const = default;
  std::array<int64_t, kValues> values() const;
  static BleuStatistics from_values(std::span<const int64_t, kValues> values);
};

struct BleuScore {
  double score = 0;                // 0 to 100
  double brevity_penalty = 0;      // 0 to 1
  std::vector<double> precisions;  // in percent, smoothed, n = 1 to max_order
  BleuStatistics statistics;

  double length_ratio() const;  // hypothesis to reference, 0 without reference tokens
};

// As a TextMetric its statistics are hypothesis and reference tokens, then matches, then totals of
// orders 1 to max_order.
class Bleu : public TextMetric {
 public:
  // Throws ConfigError for an unknown tokenizer or smoothing, or an order out of range.
  explicit Bleu(const BleuConfig& config = {});

  // One segment against its references, at least one.
  BleuStatistics segment_statistics(const std::string& hypothesis,
                                    const std::vector<std::string>& references) const;
  // All segments; references[r][i] is reference r of segment i. Throws DataError for sets of
  // another size than the hypotheses and for no set at all.
  BleuStatistics corpus_statistics(const std::vector<std::string>& hypotheses,
                                   const std::vector<std::vector<std::string>>& references) const;

  BleuScore score(const BleuStatistics& statistics) const;
  BleuScore corpus(const std::vector<std::string>& hypotheses,
                   const std::vector<std::vector<std::string>>& references) const {
    return score(corpus_statistics(hypotheses, references));
  }
  // One segment; use effective_order here.
  BleuScore sentence(const std::string& hypothesis,
                     const std::vector<std::string>& references) const {
    return score(segment_statistics(hypothesis, references));
  }

  std::string name() const override { return "BLEU"; }
  std::size_t value_count() const override {
    return 2 + 2 * static_cast<std::size_t>(config_.max_order);
  }
  std::vector<double> statistics(const std::vector<std::string>& hypotheses,
                                 const std::vector<std::vector<std::string>>& references,
                                 std::size_t begin, std::size_t end) const override;
  MetricValue value(std::span<const double> sums,
                    Arithmetic arithmetic = Arithmetic::kDouble) const override;
  std::string details(std::span<const double> sums) const override;
  std::vector<SignaturePart> signature_parts() const override;

  // "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0": what a score is comparable to.
  std::string signature(int reference_count = 1) const;
  // The line of sacreBLEU's command: "BLEU|nrefs:1|... = 32.4 66.0/40.1/26.2/17.5 (BP = ...)".
  std::string format(const BleuScore& score, int reference_count = 1, int decimals = 1) const;

 private:
  std::string prepare(const std::string& segment) const;  // lower-cased and spaced out
  BleuStatistics statistics_of(std::span<const double> sums) const;
  static std::string details_of(const BleuScore& score);

  BleuConfig config_;
  BleuTokenizer tokenizer_;
};

}  // namespace lockstep
