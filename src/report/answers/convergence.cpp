#include "report/answers/convergence.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/statistics.h"

namespace lockstep {

namespace {

// The least worthwhile gain of a tenth more training, as a share of all that the run gained.
constexpr double kWorthIt = 0.01;

struct PowerFit {
  double end = 0, scale = 0, power = 0, squares = 0;
  double operator()(double x) const { return end - scale * std::pow(x, -power); }
};

PowerFit fit_with(const std::vector<Point>& points, double power) {
  std::vector<Point> moved;
  for (const Point& p : points) moved.push_back({std::pow(p.x, -power), p.y});
  const LineFit line = fit_line(moved);
  return {line.intercept, -line.slope, power, line.deviation * line.deviation};
}

constexpr double kLeastPower = 0.05, kMostPower = 4;

// Fits the best power of a grid, then refines it by golden section (Kiefer 1953); for each power
// the rest is a line in x^-power.
PowerFit fit_power(const std::vector<Point>& points) {
  PowerFit best{.squares = HUGE_VAL};
  constexpr double kFactor = 1.2, kGolden = 0.618034;
  for (double power = kLeastPower; power < kMostPower; power *= kFactor) {
    const PowerFit fit = fit_with(points, power);
    if (fit.squares < best.squares) best = fit;
  }
  double low = best.power / kFactor, high = best.power * kFactor;
  while (high / low > 1 + 1e-4) {
    const double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    const bool left = fit_with(points, a).squares < fit_with(points, b).squares;
    (left ? high : low) = left ? b : a;
  }
  return fit_with(points, (low + high) / 2);
}

double best_of(const std::vector<Point>& points, bool higher) {
  double out = points.front().y;
  for (const Point& p : points) out = higher ? std::max(out, p.y) : std::min(out, p.y);
  return out;
}

// Returns the noise from one evaluation to the next, without the trend, by second differences,
// whose variance is six times that of white noise.
double noise_of(const std::vector<Point>& points) {
  std::vector<double> differences;
  for (std::size_t i = 2; i < points.size(); ++i) {
    differences.push_back(points[i].y - 2 * points[i - 1].y + points[i - 2].y);
  }
  if (differences.empty()) return 0;
  double squares = 0;
  for (double d : differences) squares += d * d;
  const double usual = std::sqrt(squares / static_cast<double>(differences.size()) / 6);
  return differences.size() < 6
             ? usual
             : std::min(usual, robust_deviation(differences) / std::sqrt(6.0) * 1.5);
}

}  // namespace

Trend judge_trend(const std::vector<Point>& evaluations, bool higher_is_better) {
  Trend out;
  const std::size_t n = evaluations.size();
  constexpr std::size_t kLeast = 4;
  if (n < kLeast) return out;
  const std::size_t used = std::max(kLeast, (n + 1) / 2);
  const std::vector<Point> tail(evaluations.end() - static_cast<std::ptrdiff_t>(used),
                                evaluations.end());
  const LineFit line = fit_line(tail);
  out.evaluations = static_cast<int>(used);
  out.slope = line.slope;
  out.margin = line.slope_margin();
  out.first_step = tail.front().x;
  out.last_step = tail.back().x;
  const double sign = higher_is_better ? 1 : -1, more = 0.1 * out.last_step;
  out.gain_of_tenth = sign * line.slope * more;
  out.gain_margin = out.margin * more;
  out.whole_change = std::abs(best_of(evaluations, higher_is_better) - evaluations.front().y);
  const double worth = kWorthIt * out.whole_change;
  const double low = out.gain_of_tenth - out.gain_margin,
               high = out.gain_of_tenth + out.gain_margin;
  if (low > 0 && out.gain_of_tenth > worth) {
    out.kind = TrendKind::kImproving;
  } else if (high < 0 && -out.gain_of_tenth > worth) {
    out.kind = TrendKind::kWorse;
  } else if (high <= 3 * worth) {
    out.kind = TrendKind::kLevel;
  }
  return out;
}

std::optional<Saturation> fit_saturation(const std::vector<Point>& evaluations,
                                         bool higher_is_better) {
  std::vector<Point> points;  // without the beginning, which follows no power law
  for (const Point& p : evaluations) {
    if (p.x >= 0.05 * evaluations.back().x) points.push_back(p);
  }
  constexpr std::size_t kLeast = 6;
  if (points.size() < kLeast || points.front().x <= 0) return std::nullopt;
  const double scale = points.back().x;
  for (Point& p : points) p.x /= scale;
  const PowerFit fit = fit_power(points);
  const double sign = higher_is_better ? 1 : -1;
  if (fit.power < 1.2 * kLeastPower) return std::nullopt;  // the curve does not bend
  const double explained = std::abs(fit(1) - fit(points.front().x));
  if (explained < 3 * std::sqrt(fit.squares)) return std::nullopt;  // mostly scatter
  auto gain_of = [&](const PowerFit& f) { return sign * (f(2) - f(1)); };

  std::vector<double> residuals;
  for (const Point& p : points) residuals.push_back(p.y - fit(p.x));
  // The fit of three parameters makes residuals too small by this factor, and few of them tell
  // little.
  const auto n = static_cast<double>(points.size());
  const double wider = std::sqrt(n / (n - 3)) *
                       student_quantile(static_cast<int>(points.size()) - 3) /
                       student_quantile(1000);
  constexpr int kSamples = 200;
  std::vector<double> gains;
  uint64_t counter = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    std::vector<Point> drawn = points;
    for (Point& p : drawn) {
      const auto which = random_below(1, counter++, static_cast<uint32_t>(residuals.size()));
      p.y = fit(p.x) + wider * residuals[which];
    }
    gains.push_back(gain_of(fit_power(drawn)));
  }
  Saturation out{.end = fit.end,
                 .scale = fit.scale * std::pow(scale, fit.power),
                 .power = fit.power,
                 .deviation = std::sqrt(fit.squares),
                 .gain = gain_of(fit),
                 .gain_low = quantile(gains, 0.025),
                 .gain_high = quantile(gains, 0.975)};
  const double gained = std::abs(best_of(points, higher_is_better) - points.front().y);
  if (out.gain_high - out.gain_low > gained || !std::isfinite(out.gain)) return std::nullopt;
  return out;
}

Overfit judge_overfit(const std::vector<Point>& evaluation, const std::vector<Point>& training) {
  Overfit out;
  const std::size_t n = evaluation.size();
  if (n < 4 || training.size() != n) return out;
  auto lowest = std::min_element(evaluation.begin(), evaluation.end(),
                                 [](const Point& a, const Point& b) { return a.y < b.y; });
  const auto at = static_cast<std::size_t>(lowest - evaluation.begin());
  out.turning_point = lowest->x;
  out.lowest = lowest->y;
  out.last = evaluation.back().y;
  out.noise = noise_of(evaluation);
  out.gap_at_turn = lowest->y - training[at].y;
  out.gap_last = evaluation.back().y - training.back().y;
  const std::size_t later = std::min<std::size_t>(3, n - 1 - at);
  out.kind = OverfitKind::kNone;
  if (later == 0) return out;
  double mean = 0;
  for (std::size_t i = n - later; i < n; ++i) mean += evaluation[i].y / static_cast<double>(later);
  const double rise = mean - out.lowest;
  const bool training_fell = training.back().y < training[at].y;
  if (!training_fell || rise <= 0.01 * std::abs(out.lowest)) return out;
  if (rise > 3 * out.noise) {
    out.kind = OverfitKind::kClear;
  } else if (rise > 2 * out.noise) {
    out.kind = OverfitKind::kBegun;
  }
  return out;
}

}  // namespace lockstep
