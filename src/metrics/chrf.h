// chrF (Popovic 2015) and chrF++ (Popovic 2017) as sacreBLEU 2.6.0 computes them: the F score of
// n-grams of characters and, for chrF++, of words.
#pragma once

#include <cstdint>

#include "metrics/metric.h"

namespace lockstep {

struct ChrfConfig {
  int char_order = 6;  // longest n-gram of characters, at least 1
  int word_order = 0;  // longest n-gram of words; 2 makes it chrF++
  int beta = 2;        // how much more recall counts than precision
  bool lowercase = false;
  bool whitespace = false;     // white space counts as characters
  bool eps_smoothing = false;  // as NLTK and Moses; else orders that a text lacks do not count
};

// Statistics: for each order, characters first, the n-grams of the hypothesis (0 where the
// reference has none), of the reference with the best F score, and those in both.
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

  // 0 to 100, over all segments. Throws DataError as corpus_sums().
  double corpus(const std::vector<std::string>& hypotheses,
                const std::vector<std::vector<std::string>>& references) const {
    return value(corpus_sums(*this, hypotheses, references)).score;
  }

 private:
  ChrfConfig config_;
};

}  // namespace lockstep
