// How predicted numbers go with given ones: the figures of regression. As scipy.stats.pearsonr,
// scipy.stats.spearmanr and sklearn.metrics.mean_squared_error compute them.
#pragma once

#include <span>
#include <vector>

namespace lockstep {

// Both as long, at least 2 numbers. Not a number where one side is constant.
double pearson(std::span<const double> a, std::span<const double> b);
double spearman(std::span<const double> a, std::span<const double> b);
double mean_squared_error(std::span<const double> a, std::span<const double> b);

// Places in ascending order, from 1; equal numbers share the mean of their places. REQUIRES
// numbers.
std::vector<double> average_ranks(std::span<const double> values);

}  // namespace lockstep
