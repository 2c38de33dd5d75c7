// Computes chrF (Popovic 2015) and chrF++ (Popovic 2017) like sacreBLEU 2.6.0: the F score of
// character n-grams and, for chrF++, of word n-grams.
#pragma once

#include <cstdint>

#include "metrics/metric.h"

namespace lockstep {

struct ChrfConfig {
  int char_order = 6;  // the longest character n-gram, at least 1
  int word_order = 0;  // the longest word n-gram; 2 makes it chrF++
  int beta = 2;        // the weight of recall relative to precision
  bool lowercase = false;
  bool whitespace = false;     // white space counts as characters
  bool eps_smoothing = false;  // as in NLTK and Moses; else missing orders do not count
};

// The statistics contain for each order, characters first, the number of n-grams in the hypothesis
// (0 if the reference has none), in the reference with the best F score, and in both.
class Chrf : public TextMetric {
 public:
  explicit Chrf(const ChrfConfig& config = {});  // throws ConfigError for orders out of range

  std::string name() const override;
  std::size_t value_count() const override;
  std::vector<double> statistics(const std::vector<std::string>& hypotheses,
                                 const std::vector<std::vector<std::string>>& references,
                                 std::size_t begin, std::size_t end) const override;
  MetricValue value(std::span<const double> sums,
                    Arithmetic arithmetic = Arithmetic::kDouble) const override;
  std::vector<SignaturePart> signature_parts() const override;

  // Returns a score from 0 to 100 over all segments. Throws DataError like corpus_sums().
  double corpus(const std::vector<std::string>& hypotheses,
                const std::vector<std::vector<std::string>>& references) const {
    return value(corpus_sums(*this, hypotheses, references)).score;
  }

 private:
  ChrfConfig config_;
};

}  // namespace lockstep
