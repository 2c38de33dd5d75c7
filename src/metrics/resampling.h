// Estimates how certain a score is and whether one system is better than another: bootstrap
// resampling (Koehn 2004) and approximate randomization (Riezler and Maxwell 2005). Random numbers
// and precision are those of sacreBLEU 2.6.0, so that the digits are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/metric.h"

namespace lockstep {

struct ResamplingSeed {
  uint64_t value = 12345;
  std::string text = "12345";  // as signatures show it

  // Parses a whole number, or "none" for a different seed each time. Throws ConfigError for
  // anything else, with `name` as the origin of the text.
  static ResamplingSeed parse(const std::string& text, const std::string& name);
};

// The mean of the resamples' scores and half the width of their 95 % confidence interval.
struct Confidence {
  double mean = 0, half_width = 0;
};

// `statistics` are those of all segments as TextMetric::statistics() returns them, with at least
// one segment.
Confidence bootstrap_confidence(const TextMetric& metric, std::span<const double> statistics,
                                int64_t resamples, uint64_t seed);

enum class PairedTest { kBootstrap, kRandomization };

struct PairedResult {
  double score = 0;
  std::optional<double> p_value;         // for all systems except the baseline
  std::optional<Confidence> confidence;  // only with kBootstrap
};

// Compares systems with the first one, the baseline. systems[s] are the statistics of system s.
struct PairedOptions {
  PairedTest test = PairedTest::kBootstrap;
  int64_t trials = 1000;
  uint64_t seed = 12345;
};
std::vector<PairedResult> paired_test(const TextMetric& metric,
                                      const std::vector<std::vector<double>>& systems,
                                      const PairedOptions& options);

}  // namespace lockstep
