#include <algorithm>
#include <cmath>
#include <map>

#include "base/statistics.h"
#include "report/answers/answers_hosts.h"
#include "report/run/analysis_series.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostHosts = 8, kMostPoints = 400;

std::vector<Point> line_points(const HostLine& line, double begin) {
  std::vector<Point> out;
  for (const HostRow& row : line.host->rows) {
    out.push_back({(row.time - row.seconds / 2 - begin) / 60, line.value(row)});
  }
  return out;
}

PlotSeries drawn(const std::string& name, const std::vector<Point>& points) {
  PlotSeries out{.name = name, .points = {}};
  for (const Point& p : points) out.points.push_back({p.x, p.y});
  return out;
}

// Summarises all lines in each of 200 stretches of time.
std::vector<PlotSeries> spread_of(const std::vector<std::vector<Point>>& lines) {
  double last = 0;
  for (const auto& points : lines) {
    for (const Point& p : points) last = std::max(last, p.x);
  }
  constexpr double kStretches = 200;
  std::map<int, std::vector<double>> stretches;
  for (const auto& points : lines) {
    for (const Point& p : points) {
      if (!std::isfinite(p.y) || p.x < 0) continue;
      stretches[last > 0 ? static_cast<int>(p.x / last * (kStretches - 1)) : 0].push_back(p.y);
    }
  }
  std::vector<Point> lowest, middle, highest;
  for (const auto& [stretch, values] : stretches) {
    const double x = (stretch + 0.5) / kStretches * last;
    lowest.push_back({x, *std::min_element(values.begin(), values.end())});
    middle.push_back({x, mean(values)});
    highest.push_back({x, *std::max_element(values.begin(), values.end())});
  }
  return {drawn("lowest of all", lowest), drawn("mean", middle), drawn("highest of all", highest)};
}

}  // namespace

std::vector<PlotSeries> series_over_time(const Run& run, const std::vector<HostLine>& lines) {
  double begin = run.history.attempts.empty() ? 0 : run.history.attempts.front().began;
  if (begin == 0 && !lines.empty() && !lines.front().host->rows.empty()) {
    begin = lines.front().host->rows.front().time;
  }
  std::vector<std::vector<Point>> all;
  for (const HostLine& line : lines) all.push_back(line_points(line, begin));
  if (all.size() > kMostHosts) return spread_of(all);
  std::vector<PlotSeries> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    out.push_back(drawn(lines[i].name, binned(all[i], kMostPoints)));
  }
  return out;
}

}  // namespace lockstep
