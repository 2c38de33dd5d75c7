#include "metrics/metric.h"

#include <utility>

#include "base/error.h"

namespace lockstep {

std::vector<double> sum_statistics(std::span<const double> statistics, std::size_t value_count) {
  std::vector<double> sums(value_count, 0);
  for (std::size_t i = 0; i < statistics.size(); i += value_count) {
    for (std::size_t k = 0; k < value_count; ++k) sums[k] += statistics[i + k];
  }
  return sums;
}

void check_references(std::string_view metric, const std::vector<std::string>& hypotheses,
                      const std::vector<std::vector<std::string>>& references) {
  if (references.empty()) throw DataError("{}: no references", metric);
  for (const std::vector<std::string>& set : references) {
    if (set.size() == hypotheses.size()) continue;
    throw DataError("{}: {} hypotheses but {} references", metric, hypotheses.size(), set.size());
  }
}

std::vector<double> corpus_sums(const TextMetric& metric,
                                const std::vector<std::string>& hypotheses,
                                const std::vector<std::vector<std::string>>& references) {
  check_references(metric.name(), hypotheses, references);
  return sum_statistics(metric.statistics(hypotheses, references, 0, hypotheses.size()),
                        metric.value_count());
}

std::vector<SignaturePart> signature_of(const TextMetric& metric, const SignatureContext& context) {
  std::vector<SignaturePart> parts{{"nrefs", "#", std::to_string(context.references)}};
  if (context.bootstrap > 0) parts.push_back({"bs", "bs", std::to_string(context.bootstrap)});
  if (context.randomized > 0) parts.push_back({"ar", "ar", std::to_string(context.randomized)});
  if (!context.seed.empty()) parts.push_back({"seed", "rs", context.seed});
  for (SignaturePart& part : metric.signature_parts()) parts.push_back(std::move(part));
  parts.push_back({"version", "v", kSacrebleuVersion});
  return parts;
}

std::string signature_text(const std::vector<SignaturePart>& parts, bool brief) {
  std::string out;
  for (const SignaturePart& part : parts) {
    if (!out.empty()) out += '|';
    out += (brief ? part.short_name : part.name) + ':' + part.value;
  }
  return out;
}

}  // namespace lockstep
