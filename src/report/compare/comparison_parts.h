// Helpers that the figures of a comparison share. Part of report/compare/comparison_plots.h.
#pragma once

#include <string>
#include <vector>

#include "report/compare/comparison.h"
#include "report/draw/plot.h"

namespace lockstep {

// Returns "Mean of 3 runs with different seeds; bars: standard deviation.", for captions.
std::string repeats_text(const Comparison& comparison);
// Returns a group's name where `varied` (a key, or "network") is on the axis. Parts that are the
// same in all groups are left out.
std::string group_name(const Comparison& comparison, const ComparedGroup& group,
                       const std::string& varied, bool with_setup);
// Returns the series of that name, creating it if there is none.
PlotSeries& series_named(PlotPanel& panel, const std::string& name);
// Sorts points from left to right.
void finish(PlotPanel& panel);
// Adds the figure unless it is empty. Of more series in a panel than can be told apart, only the
// first are drawn, and the caption says so.
void add_figure(std::vector<Figure>& out, Figure figure);
// Replaces all but letters, digits and '-'.
std::string file_name(const std::string& text);
// Adds the unit that the tasks' metrics have (docs/run-folder.md#tags).
std::string metric_title(const std::string& metric);
PlotAxis from_zero(std::string title);

// Adds the metric and the loss against epochs and time, one panel per set-up
// (comparison_curves.cpp).
void add_curve_figures(const Comparison& comparison, std::vector<Figure>& out);

}  // namespace lockstep
