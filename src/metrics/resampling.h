// How sure a score is, and whether one system is better than another: bootstrap resampling (Koehn
// 2004) and approximate randomization (Riezler and Maxwell 2005) as sacreBLEU 2.6.0 computes them,
// with its random numbers and its precision, so that the digits are the same.
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

  // A whole number, or "none" for another one every time. Throws ConfigError for anything else;
  // `name` says where the text is from.
  static ResamplingSeed parse(const std::string& text, const std::string& name);
};

// Mean of the resamples' scores and half the width of their 95 % interval.
struct Confidence {
  double mean = 0, half_width = 0;
};

// `statistics`: those of all segments, as TextMetric::statistics() gives them; at least one
// segment.
Confidence bootstrap_confidence(const TextMetric& metric, std::span<const double> statistics,
                                int64_t resamples, uint64_t seed);

enum class PairedTest { kBootstrap, kRandomization };

struct PairedResult {
  double score = 0;
  std::optional<double> p_value;         // all but the baseline
  std::optional<Confidence> confidence;  // with kBootstrap
};

// Compares systems with the first, the baseline. systems[s] are the statistics of system s.
struct PairedOptions {
  PairedTest test = PairedTest::kBootstrap;
  int64_t trials = 1000;
  uint64_t seed = 12345;
};
std::vector<PairedResult> paired_test(const TextMetric& metric,
                                      const std::vector<std::vector<double>>& systems,
                                      const PairedOptions& options);

}  // namespace lockstep
