// Computes the translation edit rate (Snover et al. 2006) like Tercom and, following it, sacreBLEU
// 2.6.0: insertions, deletions, substitutions and shifts of word sequences, divided by the
// reference's words.
#pragma once

#include <cstdint>

#include "metrics/metric.h"

namespace lockstep {

struct TerConfig {
  bool case_sensitive = false;
  bool normalized = false;  // separates punctuation, decodes &quot; and the like
  bool no_punctuation = false;
  bool asian_support =
      false;  // with the two above: CJK characters and marks are tokens of their own
};

// The statistics are the fewest edits to any of the references and the mean number of words of the
// references.
class Ter : public TextMetric {
 public:
  explicit Ter(const TerConfig& config = {}) : config_(config) {}

  std::string name() const override { return "TER"; }
  std::size_t value_count() const override { return 2; }
  std::vector<double> statistics(const std::vector<std::string>& hypotheses,
                                 const std::vector<std::vector<std::string>>& references,
                                 std::size_t begin, std::size_t end) const override;
  MetricValue value(std::span<const double> sums,
                    Arithmetic arithmetic = Arithmetic::kDouble) const override;
  std::vector<SignaturePart> signature_parts() const override;

 private:
  std::string tokenize(std::string_view line) const;  // returns words separated by white space

  TerConfig config_;
};

}  // namespace lockstep
