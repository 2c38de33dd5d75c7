// What the figures of a comparison share. Part of report/compare/comparison_plots.h.
#pragma once

#include <string>
#include <vector>

#include "report/compare/comparison.h"
#include "report/draw/plot.h"

namespace lockstep {

// "Mean of 3 runs with different seeds; bars: standard deviation.", for captions.
std::string repeats_text(const Comparison& comparison);
// What a group is called where `varied` (a key, or "network") is on the axis. Parts that are the
// same in all groups are left out.
std::string group_name(const Comparison& comparison, const ComparedGroup& group,
                       const std::string& varied, bool with_setup);
// The series of that name, made if there is none.
PlotSeries& series_named(PlotPanel& panel, const std::string& name);
// Points from left to right.
void finish(PlotPanel& panel);
// Unless it is empty; with more series in a panel than can be told apart the first ones are drawn,
// and the caption says so.
void add_figure(std::vector<Figure>& out, Figure figure);
// Letters, digits and '-'.
std::string file_name(const std::string& text);
// With the unit that the tasks' metrics have (docs/run-folder.md#tags).
std::string metric_title(const std::string& metric);
PlotAxis from_zero(std::string title);

// The metric and the loss against epochs and time, a panel a set-up (comparison_curves.cpp).
void add_curve_figures(const Comparison& comparison, std::vector<Figure>& out);

}  // namespace lockstep
