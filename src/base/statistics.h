// Means and quantiles of numbers; the one definition for logs, plans and reports. Source: Hyndman
// and Fan 1996, definition 7 (numpy's default), for quantiles.
#pragma once

#include <vector>

namespace lockstep {

// All are NaN for no values.
double mean(const std::vector<double>& values);
double quantile(std::vector<double> values, double share);  // 0 to 1, between neighbours linear
double median(std::vector<double> values);
// Median absolute deviation times 1.4826: the standard deviation of a normal distribution, blind
// to outliers (Rousseeuw and Croux 1993).
double robust_deviation(const std::vector<double>& values);

}  // namespace lockstep
