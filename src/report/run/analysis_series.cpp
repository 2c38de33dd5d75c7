#include "report/run/analysis_series.h"

#include <array>
#include <cmath>
#include <limits>

namespace lockstep {

std::vector<Point> binned(const std::vector<Point>& points, std::size_t most) {
  std::vector<Point> good;
  for (const Point& p : points) {
    if (std::isfinite(p.x) && std::isfinite(p.y)) good.push_back(p);
  }
  if (good.size() <= most || most == 0) return good;
  std::vector<Point> out;
  out.reserve(most);
  for (std::size_t bin = 0; bin < most; ++bin) {
    const std::size_t from = bin * good.size() / most, to = (bin + 1) * good.size() / most;
    Point sum;
    for (std::size_t i = from; i < to; ++i) {
      sum.x += good[i].x;
      sum.y += good[i].y;
    }
    const auto n = static_cast<double>(to - from);
    out.push_back({sum.x / n, sum.y / n});
  }
  return out;
}

LineFit fit_line(const std::vector<Point>& points) {
  LineFit out{.count = static_cast<int>(points.size())};
  const auto n = static_cast<double>(points.size());
  double x = 0, y = 0;
  for (const Point& p : points) {
    x += p.x / n;
    y += p.y / n;
  }
  double xx = 0, xy = 0;
  for (const Point& p : points) {
    xx += (p.x - x) * (p.x - x);
    xy += (p.x - x) * (p.y - y);
  }
  out.slope = xy / xx;
  out.intercept = y - out.slope * x;
  double squares = 0;
  for (const Point& p : points) {
    const double residual = p.y - out.intercept - out.slope * p.x;
    squares += residual * residual;
  }
  if (points.size() > 2) out.deviation = std::sqrt(squares / (n - 2));
  out.slope_error = out.deviation / std::sqrt(xx);
  return out;
}

double LineFit::slope_margin() const { return student_quantile(count - 2) * slope_error; }

double student_quantile(int degrees) {
  constexpr std::array<double, 10> kSmall = {12.706, 4.303, 3.182, 2.776, 2.571,
                                             2.447,  2.365, 2.306, 2.262, 2.228};
  if (degrees < 1) return std::numeric_limits<double>::infinity();
  if (degrees <= static_cast<int>(kSmall.size())) {
    return kSmall[static_cast<std::size_t>(degrees - 1)];
  }
  // The Cornish-Fisher expansion around the normal quantile (Abramowitz and Stegun, 26.7.5).
  const double z = 1.959964;
  const double v = degrees;
  return z + (z * z * z + z) / (4 * v) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * v * v);
}

}  // namespace lockstep
