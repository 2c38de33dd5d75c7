// Compares predicted numbers with given ones: the figures of regression, computed like
// scipy.stats.pearsonr, scipy.stats.spearmanr and sklearn.metrics.mean_squared_error.
#pragma once

#include <span>
#include <vector>

namespace lockstep {

// REQUIRES: both sides have the same number of values, at least 2. The correlations are NaN if one
// side is constant.
double pearson(std::span<const double> a, std::span<const double> b);
double spearman(std::span<const double> a, std::span<const double> b);
double mean_squared_error(std::span<const double> a, std::span<const double> b);

// Returns the ranks of the values in ascending order, from 1. Equal values share the mean of their
// ranks. REQUIRES: no NaN.
std::vector<double> average_ranks(std::span<const double> values);

}  // namespace lockstep
