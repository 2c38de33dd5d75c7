// Draws the frame of a panel: scales, grid, ticks, titles. Part of report/draw/plot.h.
#pragma once

#include <string>

#include "report/draw/plot.h"
#include "report/draw/ticks.h"

namespace lockstep {

// Maps the values of one axis to pixels.
class PlotScale {
 public:
  // `low` and `high` are those of the values; `axis` may extend them. Pixels go from `from` to
  // `to`.
  PlotScale(const PlotAxis& axis, double low, double high, double from, double to);

  bool can_show(double value) const;
  double operator()(double value) const;  // pixels
  const Ticks& ticks() const { return ticks_; }

 private:
  void make_room();  // on both sides of the values

  bool logarithmic_ = false;
  double low_ = 0, high_ = 1, from_ = 0, to_ = 1;
  Ticks ticks_;
};

// The area of a panel's data within the figure, in pixels.
struct PlotArea {
  double left = 0, top = 0, right = 0, bottom = 0;
};

inline constexpr double kPlotText = 12;  // pixels

// Draws grid, tick labels, axes, and titles of panel and axes.
std::string axes_svg(const PlotPanel& panel, const PlotArea& area, const PlotScale& x,
                     const PlotScale& y, const SvgPaint& paint);

}  // namespace lockstep
