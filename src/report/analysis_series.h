// Statistics of series, as pure functions: quantiles, means of bins, least squares with its
// uncertainty. Sources: Draper and Smith, "Applied Regression Analysis" (1998), section 1.4, for
// the standard error of a slope; Hyndman and Fan 1996, definition 7, for quantiles.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep {

struct Point {
  double x = 0, y = 0;
};

double mean_of(const std::vector<double>& values);          // NaN for none
double quantile(std::vector<double> values, double share);  // 0 to 1; NaN for none
double median_of(std::vector<double> values);
// Median absolute deviation times 1.4826: the standard deviation of a normal distribution, blind
// to outliers (Rousseeuw and Croux 1993).
double robust_deviation(const std::vector<double>& values);

// At most `most` points: each the mean x and mean y of equally many neighbours; not finite ones are
// left out.
std::vector<Point> binned(const std::vector<Point>& points, std::size_t most);

// y = intercept + slope * x by least squares.
struct LineFit {
  double intercept = 0, slope = 0;
  double slope_error = 0;  // standard error
  double deviation = 0;    // of the residuals, n - 2 degrees of freedom
  int count = 0;
  // Half of the 95 % interval of the slope, by Student's t.
  double slope_margin() const;
};
// REQUIRES: 3 points or more with two different x.
LineFit fit_line(const std::vector<Point>& points);

// The 97.5 % quantile of Student's t: 12.71 for 1, 1.96 for many degrees of freedom.
double student_quantile(int degrees);

}  // namespace lockstep
