// Means and quantiles, defined once for logs, plans and reports. Quantiles follow Hyndman and Fan
// 1996, definition 7 (numpy's default).
#pragma once

#include <vector>

namespace lockstep {

// All functions return NaN for no values.
double mean(const std::vector<double>& values);
double quantile(std::vector<double> values, double share);  // share: 0 to 1; interpolates linearly
double median(std::vector<double> values);
// Returns the median absolute deviation times 1.4826. For a normal distribution that estimates the
// standard deviation, and outliers do not affect it (Rousseeuw and Croux 1993).
double robust_deviation(const std::vector<double>& values);

}  // namespace lockstep
