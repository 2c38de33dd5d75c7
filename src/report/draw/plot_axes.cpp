#include "report/draw/plot_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace lockstep {

namespace {

constexpr int kTicks = 5;

Ticks ticks_of(const PlotAxis& axis, double low, double high, double pixels) {
  if (!axis.names.empty()) {
    Ticks out{.at = {}, .labels = axis.names};
    for (std::size_t i = 0; i < axis.names.size(); ++i) out.at.push_back(static_cast<double>(i));
    return out;
  }
  if (!axis.marks.empty()) {
    Ticks out{.at = axis.marks, .labels = {}};
    std::sort(out.at.begin(), out.at.end());
    out.at.erase(std::unique(out.at.begin(), out.at.end()), out.at.end());
    out.labels = tick_labels(out.at);
    return out;
  }
  if (axis.logarithmic) return log_ticks(low, high);
  const double pixels_a_tick = axis.whole ? 22 : 50;  // labels of whole numbers are short
  const int most = axis.whole ? 2 * kTicks : kTicks;
  const int count = std::clamp(static_cast<int>(pixels / pixels_a_tick), 2, most);
  return axis.whole ? whole_ticks(low, high, count) : linear_ticks(low, high, count);
}

// Drops labels that would touch their left neighbour.
void thin_labels(Ticks& ticks, const std::vector<double>& pixels) {
  double end = -1e9;
  for (std::size_t i = 0; i < ticks.at.size(); ++i) {
    const double half = text_width(ticks.labels[i]) * kPlotText / 2;
    if (pixels[i] - half < end + 4) {
      ticks.labels[i].clear();
    } else {
      end = pixels[i] + half;
    }
  }
}

}  // namespace

PlotScale::PlotScale(const PlotAxis& axis, double low, double high, double from, double to)
    : logarithmic_(axis.logarithmic), low_(low), high_(high), from_(from), to_(to) {
  if (axis.from) low_ = std::min(low_, *axis.from);
  if (axis.to) high_ = std::max(high_, *axis.to);
  ticks_ = ticks_of(axis, low_, high_, std::abs(to - from));
  if (!axis.names.empty()) {
    constexpr double kBesideNames = 0.6;
    low_ = -kBesideNames;
    high_ = static_cast<double>(axis.names.size()) - 1 + kBesideNames;
  } else {
    low_ = std::min(low_, ticks_.at.front());
    high_ = std::max(high_, ticks_.at.back());
    // Leaves room so that no marker sits on the frame, and where all values are equal.
    if (!axis.marks.empty() || high_ <= low_) make_room();
  }
  if (to > from) {  // horizontal
    std::vector<double> pixels;
    for (double value : ticks_.at) pixels.push_back((*this)(value));
    thin_labels(ticks_, pixels);
  }
}

void PlotScale::make_room() {
  constexpr double kRoom = 0.06;
  if (logarithmic_) {
    const double factor = high_ > low_ ? std::pow(high_ / low_, kRoom) : 1.5;
    low_ /= factor;
    high_ *= factor;
  } else {
    const double room = high_ > low_ ? (high_ - low_) * kRoom : std::max(1.0, std::abs(low_)) * 0.5;
    low_ -= room;
    high_ += room;
  }
}

bool PlotScale::can_show(double value) const {
  return std::isfinite(value) && (!logarithmic_ || value > 0);
}

double PlotScale::operator()(double value) const {
  const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_)
                                    : (value - low_) / (high_ - low_);
  return from_ + (to_ - from_) * share;
}

// How far the last label may reach beyond the area: within the figure's margin.
constexpr double kBesideArea = 12;

std::string axes_svg(const PlotPanel& panel, const PlotArea& area, const PlotScale& x,
                     const PlotScale& y, const SvgPaint& paint) {
  std::string out;
  auto to = std::back_inserter(out);
  auto line = [&](double x1, double y1, double x2, double y2, const std::string& color) {
    fmt::format_to(to,
                   "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
                   "style=\"stroke:{}\"/>\n",
                   x1, y1, x2, y2, color);
  };
  auto text = [&](double at_x, double at_y, const char* anchor, const std::string& words,
                  const std::string& more = "") {
    fmt::format_to(to, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at_x,
                   at_y, anchor, more, escape_xml(words));
  };
  for (std::size_t i = 0; i < y.ticks().at.size(); ++i) {
    const double at = y(y.ticks().at[i]);
    line(area.left, at, area.right, at, paint.grid());
    text(area.left - 7, at + 4, "end", y.ticks().labels[i]);
  }
  for (std::size_t i = 0; i < x.ticks().at.size(); ++i) {
    const double at = x(x.ticks().at[i]);
    if (panel.x.names.empty()) line(at, area.top, at, area.bottom, paint.grid());
    line(at, area.bottom, at, area.bottom + 4, paint.ink());
    const std::string& label = x.ticks().labels[i];
    const double half = text_width(label) * kPlotText / 2;
    text(std::min(at, area.right + kBesideArea - half), area.bottom + 18, "middle", label);
  }
  line(area.left, area.bottom, area.right, area.bottom, paint.ink());
  line(area.left, area.top, area.left, area.bottom, paint.ink());
  text((area.left + area.right) / 2, area.bottom + 37, "middle", panel.x.title);
  if (!panel.title.empty()) {
    text(area.left, area.top - 10, "start", panel.title, " font-weight=\"600\"");
  }
  double widest = 0;
  for (const std::string& label : y.ticks().labels) widest = std::max(widest, text_width(label));
  fmt::format_to(to,
                 "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" "
                 "text-anchor=\"middle\">{}</text>\n",
                 area.left - 18 - widest * kPlotText, (area.top + area.bottom) / 2,
                 escape_xml(panel.y.title));
  return out;
}

}  // namespace lockstep
