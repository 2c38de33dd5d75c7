#include "report/draw/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>

#include "report/draw/plot_axes.h"

namespace lockstep {

namespace {

// These are in pixels.
constexpr double kWidth = 760, kMargin = 14, kTitle = 34, kLegendRow = 20, kBelowPanel = 52,
                 kBetweenPanels = 22, kLeftOfArea = 66;
constexpr std::size_t kMostColumns = 3;
constexpr std::size_t kMostErrorBars = 25;  // points; with more, a band is drawn
constexpr int kMarkers = 6;
constexpr std::array<const char*, 4> kDashes = {"", "7 3", "2 3", "9 3 2 3"};

// How a series looks, the same in all panels.
struct Look {
  int color = 0;
  bool reference = false, marked = true, filled = false;
};

struct Legend {
  std::vector<std::string> names;  // in order; references last
  std::map<std::string, Look> looks;
};

Legend legend_of(const Figure& figure) {
  Legend out;
  for (bool reference : {false, true}) {
    for (const PlotPanel& panel : figure.panels) {
      for (const PlotSeries& series : panel.series) {
        if (series.reference != reference || out.looks.contains(series.name)) continue;
        const int place = static_cast<int>(out.names.size());
        out.looks[series.name] = {.color = series.color >= 0 ? series.color : place,
                                  .reference = reference,
                                  .marked = series.points.size() <= kMostErrorBars,
                                  .filled = series.shape == PlotShape::kBars};
        out.names.push_back(series.name);
      }
    }
  }
  return out;
}

std::string color_of(const Look& look, const SvgPaint& paint) {
  return look.reference ? paint.faint() : paint.series(look.color);
}

std::string dash_of(const Look& look) {
  if (look.reference) return " stroke-dasharray=\"4 4\"";
  const std::size_t dash = static_cast<std::size_t>(look.color) % kDashes.size();
  return dash == 0 ? "" : fmt::format(" stroke-dasharray=\"{}\"", kDashes[dash]);
}

// Draws a circle, square, triangle, diamond, inverted triangle or a hexagon-like cross.
std::string marker(double x, double y, const Look& look, const SvgPaint& paint) {
  const double r = 4;
  const std::string style = fmt::format("style=\"fill:{};stroke:{}\" stroke-width=\"1\"",
                                        color_of(look, paint), paint.paper());
  auto polygon = [&](const std::vector<std::array<double, 2>>& corners) {
    std::string points;
    for (const auto& [dx, dy] : corners) points += fmt::format("{:.1f},{:.1f} ", x + dx, y + dy);
    points.pop_back();
    return fmt::format("<polygon points=\"{}\" {}/>\n", points, style);
  };
  switch (look.color % kMarkers) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" {}/>\n", x, y, r, style);
    case 1:
      return polygon({{-r, -r}, {r, -r}, {r, r}, {-r, r}});
    case 2:
      return polygon({{0, -r - 1}, {r + 1, r}, {-r - 1, r}});
    case 3:
      return polygon({{0, -r - 1.5}, {r + 1.5, 0}, {0, r + 1.5}, {-r - 1.5, 0}});
    case 4:
      return polygon({{0, r + 1}, {r + 1, -r}, {-r - 1, -r}});
    default:
      return polygon({{-2, -5}, {2, -5}, {5, -2}, {5, 2}, {2, 5}, {-2, 5}, {-5, 2}, {-5, -2}});
  }
}

// Arranges names in rows that fit the width.
std::vector<std::vector<std::string>> legend_rows(const Legend& legend) {
  std::vector<std::vector<std::string>> rows;
  double used = kWidth;
  for (const std::string& name : legend.names) {
    const double wide = 46 + text_width(name) * kPlotText;
    if (used + wide > kWidth - 2 * kMargin) {
      rows.emplace_back();
      used = 0;
    }
    rows.back().push_back(name);
    used += wide;
  }
  return rows;
}

std::string legend_svg(const Legend& legend, double top, const SvgPaint& paint) {
  std::string out;
  for (const auto& row : legend_rows(legend)) {
    double x = kMargin;
    for (const std::string& name : row) {
      const Look& look = legend.looks.at(name);
      const double y = top + 8;
      if (look.filled) {
        out += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"10\" style=\"fill:{}\"/>\n",
            x + 6, y - 5, color_of(look, paint));
      } else {
        out += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" style=\"stroke:{}\" "
            "stroke-width=\"2\"{}/>\n",
            x, y, x + 26, y, color_of(look, paint), dash_of(look));
        if (look.marked && !look.reference) out += marker(x + 13, y, look, paint);
      }
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 32, y + 4,
                         escape_xml(name));
      x += 46 + text_width(name) * kPlotText;
    }
    top += kLegendRow;
  }
  return out;
}

struct ValueRange {
  double low = HUGE_VAL, high = -HUGE_VAL;
  bool empty() const { return low > high; }
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

bool can_be_drawn(const PlotPanel& panel, const PlotPoint& p) {
  return std::isfinite(p.x) && std::isfinite(p.y) && (!panel.x.logarithmic || p.x > 0) &&
         (!panel.y.logarithmic || p.y > 0);
}

void add_ranges(const PlotPanel& panel, ValueRange& x, ValueRange& y) {
  for (const PlotSeries& series : panel.series) {
    for (const PlotPoint& p : series.points) {
      if (!can_be_drawn(panel, p)) continue;
      x.add(p.x);
      y.add(p.y + p.error);
      const double low = p.y - p.error;
      if (!panel.y.logarithmic || low > 0) y.add(low);
      if (series.shape == PlotShape::kBars && !panel.y.logarithmic) y.add(0);
    }
  }
}

// Draws one panel's series on its scales.
class SeriesDrawer {
 public:
  SeriesDrawer(const PlotPanel& panel, const PlotArea& area, const PlotScale& x, const PlotScale& y,
               const SvgPaint& paint)
      : panel_(panel), area_(area), x_(x), y_(y), paint_(paint) {}

  std::string draw(const PlotSeries& series, const Look& look) const {
    std::vector<PlotPoint> points;
    for (const PlotPoint& p : series.points) {
      if (can_be_drawn(panel_, p)) points.push_back(p);
    }
    if (series.shape == PlotShape::kBars) return bars(series, points, look);
    std::string out;
    const bool band = points.size() > kMostErrorBars;
    if (band) out += band_of(points, look);
    if (series.shape == PlotShape::kLine && points.size() > 1) out += line(points, look);
    if (look.reference || band) return out;
    for (const PlotPoint& p : points) out += error_bar(x_(p.x), p, look);
    for (const PlotPoint& p : points) {
      out += titled(marker(x_(p.x), y_(p.y), look, paint_), series, p);
    }
    return out;
  }

 private:
  double clamped(double y) const { return std::clamp(y, area_.top, area_.bottom); }
  double lower_end(const PlotPoint& p) const {
    const double low = p.y - p.error;
    return y_.can_show(low) ? clamped(y_(low)) : area_.bottom;
  }

  // Adds a title, which browsers show under the pointer.
  std::string titled(std::string element, const PlotSeries& series, const PlotPoint& p) const {
    const std::string at = panel_.x.names.empty()
                               ? fmt::format("{:g}", p.x)
                               : panel_.x.names.at(static_cast<std::size_t>(p.x));
    const std::string error = p.error > 0 ? fmt::format(" ± {:.3g}", p.error) : "";
    element.pop_back();  // its line end
    return fmt::format("<g><title>{}: {:.5g}{} at {}</title>{}</g>\n", escape_xml(series.name), p.y,
                       error, escape_xml(at), element);
  }

  std::string line(const std::vector<PlotPoint>& points, const Look& look) const {
    std::string path;
    for (const PlotPoint& p : points) path += fmt::format("{:.1f},{:.1f} ", x_(p.x), y_(p.y));
    path.pop_back();
    return fmt::format(
        "<polyline points=\"{}\" fill=\"none\" style=\"stroke:{}\" stroke-width=\"{}\" "
        "stroke-linejoin=\"round\"{}/>\n",
        path, color_of(look, paint_), look.reference ? 1.5 : 2.0, dash_of(look));
  }

  std::string band_of(const std::vector<PlotPoint>& points, const Look& look) const {
    if (std::all_of(points.begin(), points.end(), [](const auto& p) { return p.error == 0; })) {
      return "";
    }
    std::string path;
    for (const PlotPoint& p : points) {
      path += fmt::format("{:.1f},{:.1f} ", x_(p.x), clamped(y_(p.y + p.error)));
    }
    for (auto p = points.rbegin(); p != points.rend(); ++p) {
      path += fmt::format("{:.1f},{:.1f} ", x_(p->x), lower_end(*p));
    }
    path.pop_back();
    return fmt::format("<polygon points=\"{}\" style=\"fill:{}\" fill-opacity=\"0.16\"/>\n", path,
                       color_of(look, paint_));
  }

  std::string error_bar(double x, const PlotPoint& p, const Look& look) const {
    if (p.error <= 0) return "";
    const double top = clamped(y_(p.y + p.error)), bottom = lower_end(p);
    return fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {1:.1f}H{4:.1f}M{3:.1f} {2:.1f}H{4:.1f}\" "
        "fill=\"none\" style=\"stroke:{5}\" stroke-width=\"1.3\"/>\n",
        x, top, bottom, x - 4, x + 4, look.filled ? paint_.ink() : color_of(look, paint_));
  }

  std::string bars(const PlotSeries& series, const std::vector<PlotPoint>& points,
                   const Look& look) const {
    double count = 0, place = 0;  // of bars at the same x
    for (const PlotSeries& other : panel_.series) {
      if (other.shape != PlotShape::kBars) continue;
      if (&other == &series) place = count;
      count += 1;
    }
    const double room = std::abs(x_(1) - x_(0)) * 0.8, width = std::min(60.0, room / count);
    std::string out;
    for (const PlotPoint& p : points) {
      const double left = x_(p.x) + (place - count / 2) * width;
      const double zero = panel_.y.logarithmic ? area_.bottom : clamped(y_(0)), end = y_(p.y);
      out +=
          titled(fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                             "style=\"fill:{}\"/>\n",
                             left + 1, std::min(zero, end), std::max(1.0, width - 2),
                             std::abs(zero - end), color_of(look, paint_)),
                 series, p);
      out += error_bar(left + width / 2, p, look);
    }
    return out;
  }

  const PlotPanel& panel_;
  const PlotArea& area_;
  const PlotScale &x_, &y_;
  const SvgPaint& paint_;
};

std::string panel_svg(const PlotPanel& panel, const PlotArea& area, const Legend& legend,
                      const SvgPaint& paint) {
  ValueRange x, y;
  add_ranges(panel, x, y);
  if (x.empty()) {
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        (area.left + area.right) / 2, (area.top + area.bottom) / 2,
        escape_xml((panel.title.empty() ? "" : panel.title + ": ") + "nothing was measured"));
  }
  const PlotScale x_scale(panel.x, x.low, x.high, area.left, area.right);
  const PlotScale y_scale(panel.y, y.low, y.high, area.bottom, area.top);
  std::string out = axes_svg(panel, area, x_scale, y_scale, paint);
  const SeriesDrawer drawer(panel, area, x_scale, y_scale, paint);
  for (bool reference : {true, false}) {  // references lie below
    for (const PlotSeries& series : panel.series) {
      if (series.reference == reference) out += drawer.draw(series, legend.looks.at(series.name));
    }
  }
  return out;
}

}  // namespace

std::string figure_svg(const Figure& figure, SvgColors colors) {
  if (figure.draw) return figure.draw(colors);
  const SvgPaint paint{colors};
  const Legend legend = legend_of(figure);
  const bool has_legend = legend.names.size() > 1;
  const double legend_height =
      has_legend ? kLegendRow * static_cast<double>(legend_rows(legend).size()) : 0;
  const std::size_t columns = std::clamp<std::size_t>(figure.panels.size(), 1, kMostColumns);
  const std::size_t rows = (figure.panels.size() + columns - 1) / columns;
  const auto across = static_cast<double>(columns);
  const double cell = (kWidth - 2 * kMargin - (across - 1) * kBetweenPanels) / across;
  const double area_height = columns == 1 ? 300 : columns == 2 ? 240 : 190;
  const bool titled = std::any_of(figure.panels.begin(), figure.panels.end(),
                                  [](const PlotPanel& panel) { return !panel.title.empty(); });
  const double above = titled ? 30 : 14;
  const double row_height = above + area_height + kBelowPanel;
  const double top = kTitle + legend_height;
  const double height = top + row_height * static_cast<double>(rows);

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\" "
      "font-family=\"'DejaVu Sans', Verdana, sans-serif\" font-size=\"{3:.0f}\" "
      "style=\"fill:{4}\">\n",
      kWidth, height, escape_xml(figure.title), kPlotText, paint.ink());
  if (colors == SvgColors::kFile) {
    out += fmt::format("<rect width=\"100%\" height=\"100%\" style=\"fill:{}\"/>\n", paint.paper());
  }
  out += fmt::format("<text x=\"{:.0f}\" y=\"21\" font-size=\"15\" font-weight=\"600\">{}</text>\n",
                     kMargin, escape_xml(figure.title));
  if (has_legend) out += legend_svg(legend, kTitle, paint);
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const double x = kMargin + static_cast<double>(i % columns) * (cell + kBetweenPanels);
    const std::size_t row = i / columns;
    const double y = top + static_cast<double>(row) * row_height + above;
    out +=
        panel_svg(figure.panels[i], {x + kLeftOfArea, y, x + cell, y + area_height}, legend, paint);
  }
  return out + "</svg>\n";
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string figure_csv(const Figure& figure) {
  std::string out = "panel,series,x,y,error\n";
  for (const PlotPanel& panel : figure.panels) {
    for (const PlotSeries& series : panel.series) {
      for (const PlotPoint& p : series.points) {
        if (!can_be_drawn(panel, p)) continue;
        const std::string x = panel.x.names.empty()
                                  ? fmt::format("{}", p.x)
                                  : csv_cell(panel.x.names.at(static_cast<std::size_t>(p.x)));
        out += fmt::format("{},{},{},{},{}\n", csv_cell(panel.title), csv_cell(series.name), x, p.y,
                           p.error);
      }
    }
  }
  return out;
}

}  // namespace lockstep
