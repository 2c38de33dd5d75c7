// Plots a comparison: times against what was varied, metrics against epochs and time, times against
// the network's delay, scaling; only the figures for which there are data.
#pragma once

#include <vector>

#include "report/compare/comparison.h"
#include "report/draw/plot.h"

namespace lockstep {

std::vector<Figure> comparison_figures(const Comparison& comparison);

}  // namespace lockstep
