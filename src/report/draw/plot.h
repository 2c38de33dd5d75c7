// Describes plots as values, and draws them as SVG: lines, points and bars with error bars on
// linear, logarithmic or named axes. A figure has one or more panels that share a legend. Every
// series has its own colour, marker and dash, so that it can also be told apart in print without
// colours.
//
//   Figure figure{.name = "epoch-time", .title = "Epoch time against batch size", ...};
//   figure.panels.push_back({.x = {"images a rank"}, .y = {.title = "epoch time (s)", .from = 0},
//                            .series = {{"1x1", {{16, 32.1, 0.4}, {64, 12.5, 0.2}}}}});
//   write_file("epoch-time.svg", figure_svg(figure, SvgColors::kFile));
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/draw/svg.h"

namespace lockstep {

struct PlotAxis {
  std::string title;               // with its unit: "epoch time (s)"
  bool logarithmic = false;        // needs values above 0; others are left out
  bool whole = false;              // ticks only at whole numbers: epochs
  std::optional<double> from, to;  // must be visible; else the values decide
  std::vector<double> marks;       // exactly these ticks: batch sizes
  std::vector<std::string> names;  // for an x axis of names: x = 0, 1, ... (bars)
};

struct PlotPoint {
  double x = 0, y = 0;
  double error = 0;  // half of the error bar; 0: none
};

enum class PlotShape { kLine, kPoints, kBars };

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // lines connect them in this order
  PlotShape shape = PlotShape::kLine;
  int color = -1;          // equal in all panels; -1: by its name's place in the legend
  bool reference = false;  // "ideal": grey, dashed, without markers, last in the legend
};

struct PlotPanel {
  std::string title;
  PlotAxis x, y;
  std::vector<PlotSeries> series;
};

struct Figure {
  std::string name;  // for its files: "epoch-time"
  std::string title;
  std::string caption;  // what is shown, from how many runs, what the error bars are
  std::vector<PlotPanel> panels;
  std::function<std::string(SvgColors)> draw = {};  // draws something else in place of panels
};

// Leaves out points that are not finite; a panel without points says so.
std::string figure_svg(const Figure& figure, SvgColors colors);
// Returns panel,series,x,y,error of every point that is drawn.
std::string figure_csv(const Figure& figure);

// Formats a cell of CSV by RFC 4180: quoted where necessary.
std::string csv_cell(const std::string& text);

}  // namespace lockstep
