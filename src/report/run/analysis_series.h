// Statistics of series, as pure functions: means of bins, and least squares with its uncertainty.
// Draper and Smith, "Applied Regression Analysis" (1998), section 1.4, is the source for the
// standard error of a slope.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep {

struct Point {
  double x = 0, y = 0;
};

// Returns at most `most` points, each the mean x and mean y of equally many neighbours; leaves out
// points that are not finite.
std::vector<Point> binned(const std::vector<Point>& points, std::size_t most);

// y = intercept + slope * x by least squares.
struct LineFit {
  double intercept = 0, slope = 0;
  double slope_error = 0;  // standard error
  double deviation = 0;    // of the residuals, n - 2 degrees of freedom
  int count = 0;
  // Returns half of the slope's 95 % interval, by Student's t.
  double slope_margin() const;
};
// REQUIRES at least 3 points with at least two different x.
LineFit fit_line(const std::vector<Point>& points);

// Returns the 97.5 % quantile of Student's t: 12.71 for 1, 1.96 for many degrees of freedom.
double student_quantile(int degrees);

}  // namespace lockstep
