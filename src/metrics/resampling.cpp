#include "metrics/resampling.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"
#include "metrics/line_text.h"
#include "metrics/numpy_random.h"

namespace lockstep {

namespace {

// Rows of numbers that are padded to whole vectors, so that adding a row takes few instructions.
template <typename Real>
class Rows {
 public:
  static constexpr std::size_t kVector = 32 / sizeof(Real);

  Rows(std::span<const double> values, std::size_t width)
      : stride_((width + kVector - 1) / kVector * kVector),
        values_(values.size() / width * stride_) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values_[i / width * stride_ + i % width] = static_cast<Real>(values[i]);
    }
  }

  std::size_t stride() const { return stride_; }
  std::size_t size() const { return values_.size() / stride_; }
  void add_to(std::vector<Real>& sums, std::size_t row) const {
    const Real* from = values_.data() + row * stride_;
    for (std::size_t k = 0; k < stride_; k += kVector) {
      for (std::size_t j = 0; j < kVector; ++j) sums[k + j] += from[k + j];
    }
  }

 private:
  std::size_t stride_;
  std::vector<Real> values_;
};

// Scores of resamples as numpy would store them: float32 if every score is float32.
struct Scores {
  std::vector<double> values;
  bool single = true;

  void add(MetricValue value) {
    values.push_back(value.score);
    single = single && value.single;
  }
};

// Sums are taken in float32, one segment after the other, like numpy.
Scores resample(const TextMetric& metric, std::span<const double> statistics, int64_t resamples,
                uint64_t seed) {
  std::size_t width = metric.value_count();
  Rows<float> rows(statistics, width);
  auto segments = static_cast<uint32_t>(rows.size());
  NumpyRandom random(seed);
  Scores out;
  std::vector<float> sums(rows.stride());
  for (int64_t i = 0; i < resamples; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (uint32_t k = 0; k < segments; ++k) rows.add_to(sums, random.below(segments));
    std::vector<double> wide(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(width));
    out.add(metric.value(wide, Arithmetic::kSingle));
  }
  return out;
}

// Returns half the width of the range of the middle 95 % of sorted values: a fortieth is cut off at
// each end.
template <typename Real>
Real half_width(const std::vector<Real>& sorted) {
  std::size_t cut = sorted.size() / 40;
  return static_cast<Real>(0.5) * (sorted[sorted.size() - cut - 1] - sorted[cut]);
}

// Returns the exact mean, rounded once, like Python's statistics.mean(). The sum is kept in two
// numbers (Knuth's two-sum), which is exact for every possible score.
double exact_mean(const std::vector<double>& values) {
  double high = 0, low = 0;
  for (double value : values) {
    double sum = high + value;
    double part = sum - high;
    low += (high - (sum - part)) + (value - part);
    high = sum;
  }
  auto n = static_cast<double>(values.size());
  double mean = (high + low) / n;
  return mean + (std::fma(-mean, n, high) + low) / n;
}

// Adds in the order of numpy's pairwise summation: eight partial sums for up to 128 values; longer
// ranges are halved.
template <typename Real>
Real pairwise_sum(std::span<const Real> v) {
  if (v.size() < 8) return std::accumulate(v.begin(), v.end(), Real{0});
  if (v.size() > 128) {
    std::size_t half = v.size() / 2 / 8 * 8;
    return pairwise_sum(v.first(half)) + pairwise_sum(v.subspan(half));
  }
  Real r[8];
  std::copy_n(v.begin(), 8, r);
  std::size_t i = 8;
  for (; i + 8 <= v.size(); i += 8) {
    for (std::size_t j = 0; j < 8; ++j) r[j] += v[i + j];
  }
  Real sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < v.size(); ++i) sum += v[i];
  return sum;
}

template <typename Real>
Real array_mean(const std::vector<Real>& values) {
  return pairwise_sum<Real>(values) / static_cast<Real>(values.size());
}

template <typename Real>
std::vector<Real> array_of(const Scores& scores) {
  return {scores.values.begin(), scores.values.end()};
}

template <typename Real>
Confidence array_confidence(std::vector<Real> scores) {
  std::sort(scores.begin(), scores.end());
  return {array_mean(scores), half_width(scores)};
}

Confidence array_confidence(const Scores& scores) {
  return scores.single ? array_confidence(array_of<float>(scores))
                       : array_confidence(array_of<double>(scores));
}

// Returns the share of trials in which chance alone gave a larger difference. The observed trial
// counts as one of them, so the result is never 0.
template <typename Real>
double p_value(const std::vector<Real>& differences, double observed) {
  auto larger = std::count_if(differences.begin(), differences.end(), [&](Real difference) {
    return difference > static_cast<Real>(observed);
  });
  return static_cast<double>(larger + 1) / static_cast<double>(differences.size() + 1);
}

template <typename Real>
double bootstrap_p_value(const Scores& baseline, const Scores& system, double observed) {
  std::vector<Real> differences = array_of<Real>(system), other = array_of<Real>(baseline);
  for (std::size_t i = 0; i < differences.size(); ++i) {
    differences[i] = std::abs(differences[i] - other[i]);
  }
  Real mean = array_mean(differences);
  for (Real& difference : differences) difference -= mean;
  return p_value(differences, observed);
}

// In each trial, a coin toss per segment decides which of two pseudo-systems gets which of the two
// outputs.
double randomization_p_value(const TextMetric& metric, std::span<const double> baseline,
                             std::span<const double> system, double observed,
                             const PairedOptions& options) {
  std::size_t width = metric.value_count();
  Rows<double> first(baseline, width), second(system, width);
  std::vector<double> of_first[2], of_second[2];  // indexed by the coin
  std::vector<double> differences;
  NumpyRandom random(options.seed);
  NumpyCoins coins(random);
  for (int64_t trial = 0; trial < options.trials; ++trial) {
    for (int coin : {0, 1}) {
      of_first[coin].assign(first.stride(), 0);
      of_second[coin].assign(second.stride(), 0);
    }
    for (std::size_t i = 0; i < first.size(); ++i) {
      int coin = coins.next() ? 1 : 0;
      first.add_to(of_first[coin], i);
      second.add_to(of_second[coin], i);
    }
    std::vector<double> a(width), b(width);
    for (std::size_t k = 0; k < width; ++k) {
      a[k] = of_first[1][k] + of_second[0][k];
      b[k] = of_first[0][k] + of_second[1][k];
    }
    differences.push_back(std::abs(metric.value(a, Arithmetic::kInteger).score -
                                   metric.value(b, Arithmetic::kInteger).score));
  }
  return p_value(differences, observed);
}

}  // namespace

ResamplingSeed ResamplingSeed::parse(const std::string& text, const std::string& name) {
  ResamplingSeed seed{.value = 0, .text = lower_case(text)};
  if (seed.text == "none") {
    std::random_device device;
    seed.value = uint64_t{device()} << 32 | device();
    return seed;
  }
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed.value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw ConfigError(
        "{}: expected a whole number from 0 to 18446744073709551615 or none, got \"{}\"", name,
        text);
  }
  return seed;
}

Confidence bootstrap_confidence(const TextMetric& metric, std::span<const double> statistics,
                                int64_t resamples, uint64_t seed) {
  Scores scores = resample(metric, statistics, resamples, seed);
  std::sort(scores.values.begin(), scores.values.end());
  double mean = exact_mean(scores.values);
  if (!scores.single) return {mean, half_width(scores.values)};
  return {static_cast<float>(mean), half_width(array_of<float>(scores))};
}

std::vector<PairedResult> paired_test(const TextMetric& metric,
                                      const std::vector<std::vector<double>>& systems,
                                      const PairedOptions& options) {
  bool bootstrap = options.test == PairedTest::kBootstrap;
  std::vector<PairedResult> out;
  Scores baseline;
  for (const std::vector<double>& statistics : systems) {
    PairedResult result;
    result.score = metric.value(sum_statistics(statistics, metric.value_count())).score;
    double observed = out.empty() ? 0 : std::abs(out.front().score - result.score);
    Scores scores;
    if (bootstrap) {
      scores = resample(metric, statistics, options.trials, options.seed);
      result.confidence = array_confidence(scores);
    }
    if (out.empty()) {
      baseline = std::move(scores);
    } else if (!bootstrap) {
      result.p_value =
          randomization_p_value(metric, systems.front(), statistics, observed, options);
    } else if (baseline.single && scores.single) {
      result.p_value = bootstrap_p_value<float>(baseline, scores, observed);
    } else {
      result.p_value = bootstrap_p_value<double>(baseline, scores, observed);
    }
    out.push_back(result);
  }
  return out;
}

}  // namespace lockstep
