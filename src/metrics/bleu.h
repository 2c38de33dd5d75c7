// Computes BLEU (Papineni et al. 2002) and prints it like sacreBLEU 2.6.0 (Post 2018).
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

inline constexpr int kBleuMaxOrder = 8;  // the longest possible n-gram; 4 is usual

struct BleuConfig {
  std::string tokenizer = "13a";  // a name of bleu_tokenizers()
  bool lowercase = false;
  bool effective_order = false;  // use only orders that the hypothesis has; for sentences
  // The treatment of orders without a match (Chen and Cherry 2014): "exp", "floor", "add-k" or
  // "none".
  std::string smoothing = "exp";
  // The parameter of floor (default 0.1) and add-k (default 1).
  std::optional<double> smoothing_value = std::nullopt;
  int max_order = 4;  // 1 to kBleuMaxOrder
};

// The statistics that BLEU needs of some segments. Statistics of disjoint sets of segments add up,
// so each rank may count its own segments and all-reduce values().
struct BleuStatistics {
  static constexpr std::size_t kValues = 2 + 2 * kBleuMaxOrder;
  int64_t hypothesis_tokens = 0;
  int64_t reference_tokens = 0;  // of the reference nearest in length; on a tie the shorter
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

  double length_ratio() const;  // hypothesis / reference; 0 without reference tokens
};

// The TextMetric statistics are the hypothesis tokens and reference tokens, then the matches, then
// the totals of orders 1 to max_order.
class Bleu : public TextMetric {
 public:
  // Throws ConfigError for an unknown tokenizer or smoothing, or an order out of range.
  explicit Bleu(const BleuConfig& config = {});

  // Counts one segment against its references, of which there is at least one.
  BleuStatistics segment_statistics(const std::string& hypothesis,
                                    const std::vector<std::string>& references) const;
  // Counts all segments; references[r][i] is reference r of segment i. Throws DataError when a set
  // of references differs in size from the hypotheses and when there is no set.
  BleuStatistics corpus_statistics(const std::vector<std::string>& hypotheses,
                                   const std::vector<std::vector<std::string>>& references) const;

  BleuScore score(const BleuStatistics& statistics) const;
  BleuScore corpus(const std::vector<std::string>& hypotheses,
                   const std::vector<std::vector<std::string>>& references) const {
    return score(corpus_statistics(hypotheses, references));
  }
  // Scores one segment; use effective_order here.
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

  // Returns "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0". Scores with equal
  // signatures are comparable.
  std::string signature(int reference_count = 1) const;
  // Returns the line that sacreBLEU prints: "BLEU|nrefs:1|... = 32.4 66.0/40.1/26.2/17.5 (BP =
  // ...)".
  std::string format(const BleuScore& score, int reference_count = 1, int decimals = 1) const;

 private:
  std::string prepare(const std::string& segment) const;  // lower-cases and tokenizes
  BleuStatistics statistics_of(std::span<const double> sums) const;
  static std::string details_of(const BleuScore& score);

  BleuConfig config_;
  BleuTokenizer tokenizer_;
};

}  // namespace lockstep
