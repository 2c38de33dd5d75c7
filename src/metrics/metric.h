// The interface of metrics that compare text with references, computed and named like those of
// sacreBLEU 2.6.0. Each metric is a function of sums over segments, so ranks, threads and resamples
// only need to add numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr const char* kSacrebleuVersion = "2.6.0";  // the version in signatures

// The arithmetic that turns sums into a score. Python's numbers are doubles, but sacreBLEU
// resamples in numpy arrays of float32 (bootstrap) or int64 (approximate randomization), which
// changes digits.
enum class Arithmetic { kDouble, kSingle, kInteger };

struct MetricValue {
  double score = 0;     // 0 to 100; TER may exceed 100
  bool single = false;  // rounded to float32, like numpy's float32 arithmetic
};

// One part of a signature: "nrefs:1", or "#:1" in the short form.
struct SignaturePart {
  std::string name, short_name, value;
};

// The conditions of a score that are not options of the metric itself.
struct SignatureContext {
  std::size_t references = 1;
  int64_t bootstrap = 0;   // number of resamples; 0: none
  int64_t randomized = 0;  // trials of approximate randomization; 0: none
  std::string seed;        // of the resampling or the trials
};

// Immutable after construction, hence thread-safe.
class TextMetric {
 public:
  virtual ~TextMetric() = default;

  virtual std::string name() const = 0;         // the printed name: "BLEU", "chrF2++", "TER"
  virtual std::size_t value_count() const = 0;  // numbers in the statistics of a segment

  // Returns the statistics of the segments [begin, end), value_count() numbers for each segment in
  // turn. value() takes their sums over any segments, of any ranks. REQUIRES: at least one
  // references[r], each as long as hypotheses.
  virtual std::vector<double> statistics(const std::vector<std::string>& hypotheses,
                                         const std::vector<std::vector<std::string>>& references,
                                         std::size_t begin, std::size_t end) const = 0;

  virtual MetricValue value(std::span<const double> sums,
                            Arithmetic arithmetic = Arithmetic::kDouble) const = 0;
  // Returns what follows the score on its line, e.g. "66.0/40.1/26.2/17.5 (BP = ...". Most metrics
  // have none.
  virtual std::string details(std::span<const double> sums) const { return {}; }
  // Returns the metric's own parts. They come after those of the context and before the version.
  virtual std::vector<SignaturePart> signature_parts() const = 0;
};

// Adds up statistics() over the segments. Returns value_count numbers.
std::vector<double> sum_statistics(std::span<const double> statistics, std::size_t value_count);

// Returns the sums over all segments. Throws DataError when a set of references differs in size
// from the hypotheses and when there is no set.
std::vector<double> corpus_sums(const TextMetric& metric,
                                const std::vector<std::string>& hypotheses,
                                const std::vector<std::vector<std::string>>& references);
void check_references(std::string_view metric, const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references);

// Returns the parts of "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0". Scores with
// equal signatures are comparable.
std::vector<SignaturePart> signature_of(const TextMetric& metric, const SignatureContext& context);
std::string signature_text(const std::vector<SignaturePart>& parts, bool brief = false);

}  // namespace lockstep
