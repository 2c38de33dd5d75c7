// Computes perplexity: the number of equally likely tokens that a model seems to choose among.
#pragma once

#include <algorithm>
#include <cmath>

namespace lockstep {

// Returns exp of the mean negative log-likelihood per target token (in nats, without label
// smoothing). The result is capped at exp(80), about 5.5e34: so an untrained model still gives a
// number that a plot, JSON and the 32 bits of a TensorBoard file can hold. NaN stays NaN.
inline double perplexity(double mean_nll) {
  constexpr double kMostNats = 80;
  return std::exp(std::isnan(mean_nll) ? mean_nll : std::min(mean_nll, kMostNats));
}

}  // namespace lockstep
