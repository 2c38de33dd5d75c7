// Metrics of text against references, as sacreBLEU 2.6.0 computes and names them. Each is a
// function of sums over segments, so that ranks, threads and resamples add up numbers and nothing
// else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr const char* kSacrebleuVersion = "2.6.0";  // what is followed, for signatures

// How a score is computed from sums. Python's numbers are doubles; sacreBLEU resamples in numpy
// arrays of float32 (bootstrap) or int64 (approximate randomization), and digits show it.
enum class Arithmetic { kDouble, kSingle, kInteger };

struct MetricValue {
  double score = 0;     // 0 to 100, beyond for TER
  bool single = false;  // rounded to float32, as numpy's arithmetic on float32 does
};

// One part of a signature: "nrefs:1", or "#:1" in short.
struct SignaturePart {
  std::string name, short_name, value;
};

// What a score was computed with besides the metric's own options.
struct SignatureContext {
  std::size_t references = 1;
  int64_t bootstrap = 0;   // resamples; 0: none
  int64_t randomized = 0;  // trials of approximate randomization; 0: none
  std::string seed;        // of either
};

// Immutable after construction, so any thread may use it.
class TextMetric {
 public:
  virtual ~TextMetric() = default;

  virtual std::string name() const = 0;         // as scores are printed: "BLEU", "chrF2++", "TER"
  virtual std::size_t value_count() const = 0;  // numbers that the statistics of a segment have

  // Statistics of the segments [begin, end), value_count() numbers each, one segment after the
  // other: sums of them over any segments, of any ranks, are what value() takes.
  // REQUIRES references[r] as long as hypotheses, one r at least.
  virtual std::vector<double> statistics(const std::vector<std::string>& hypotheses,
                                         const std::vector<std::vector<std::string>>& references,
                                         std::size_t begin, std::size_t end) const = 0;

  virtual MetricValue value(std::span<const double> sums,
                            Arithmetic arithmetic = Arithmetic::kDouble) const = 0;
  // What follows a score on its line, as "66.0/40.1/26.2/17.5 (BP = ..."; empty for most.
  virtual std::string details(std::span<const double> sums) const { return {}; }
  // The metric's own parts, between those of the context and the version.
  virtual std::vector<SignaturePart> signature_parts() const = 0;
};

// Sums over the segments of statistics(): value_count numbers.
std::vector<double> sum_statistics(std::span<const double> statistics, std::size_t value_count);

// All segments at once. Throws DataError for sets of references of another size than the
// hypotheses and for no set at all.
std::vector<double> corpus_sums(const TextMetric& metric,
                                const std::vector<std::string>& hypotheses,
                                const std::vector<std::vector<std::string>>& references);
void check_references(std::string_view metric, const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references);

// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0": what a score is comparable to.
std::vector<SignaturePart> signature_of(const TextMetric& metric, const SignatureContext& context);
std::string signature_text(const std::vector<SignaturePart>& parts, bool brief = false);

}  // namespace lockstep
