#include "report/draw/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace lockstep {

namespace {

constexpr double kSlack = 1e-9;  // of a step: rounding must not add a tick

// Returns "1,234.5" with the given number of decimal places.
std::string grouped(double value, int places) {
  std::string text = fmt::format("{:.{}f}", std::abs(value), places);
  const std::size_t point = std::min(text.find('.'), text.size());
  constexpr std::size_t kGrouped = 5;  // digits from which commas help
  if (point >= kGrouped) {
    text = with_commas(static_cast<int64_t>(std::floor(std::abs(value) + kSlack))) +
           text.substr(point);
  }
  return (value < 0 ? "-" : "") + text;
}

// Returns the number of decimal places needed to keep the value.
int places_needed(double value) {
  constexpr int kMost = 9;
  for (int places = 0; places < kMost; ++places) {
    const double scale = std::pow(10.0, places);
    if (std::abs(std::round(value * scale) / scale - value) <= std::abs(value) * 1e-6) {
      return places;
    }
  }
  return kMost;
}

}  // namespace

std::vector<std::string> tick_labels(const std::vector<double>& values) {
  double largest = 0, smallest = HUGE_VAL;
  int places = 0;
  for (double value : values) {
    if (value == 0) continue;
    largest = std::max(largest, std::abs(value));
    smallest = std::min(smallest, std::abs(value));
    places = std::max(places, places_needed(value));
  }
  std::vector<std::string> out;
  const bool powers = largest >= 1e7 || (smallest < 1e-3 && places > 4);
  const bool even = largest < 1e3 * smallest;  // the same number of places for all
  for (double value : values) {
    if (powers && value != 0) {
      std::string text = fmt::format("{:.6g}", value);
      if (text.find('e') == std::string::npos && std::abs(value) < 1e-3) {
        text = fmt::format("{:.1e}", value);
        if (std::size_t zero = text.find(".0e"); zero != std::string::npos) text.erase(zero, 2);
      }
      out.push_back(text);
    } else {
      out.push_back(grouped(value, even ? places : places_needed(value)));
    }
  }
  return out;
}

namespace {

Ticks even_ticks(double low, double high, double step) {
  Ticks out;
  const double first = std::floor(low / step + kSlack), last = std::ceil(high / step - kSlack);
  for (double i = first; i <= last; ++i) out.at.push_back(i == 0 ? 0.0 : i * step);
  out.labels = tick_labels(out.at);
  return out;
}

// Returns the smallest of 1, 2, (2.5,) 5, 10, ... that is not below `rough`.
double nice_step(double rough, bool halves) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor == 2.5 && !halves) continue;
    if (factor * power >= rough * (1 - kSlack)) return factor * power;
  }
  return power * 10;
}

}  // namespace

Ticks linear_ticks(double low, double high, int count) {
  if (low == high) {
    const double room = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= room;
    high += room;
  }
  return even_ticks(low, high, nice_step((high - low) / std::max(1, count), true));
}

Ticks whole_ticks(double low, double high, int count) {
  const double step =
      std::max(1.0, nice_step(std::max(1e-9, high - low) / std::max(1, count), false));
  return even_ticks(low, high, step);
}

Ticks log_ticks(double low, double high) {
  Ticks out;
  const bool few = high / low < 100;
  double power = std::pow(10.0, std::floor(std::log10(low) + kSlack));
  std::vector<double> all;
  for (; power <= high * 10; power *= 10) {
    all.push_back(power);
    if (few) {
      all.push_back(2 * power);
      all.push_back(5 * power);
    }
  }
  // Takes the narrowest range of these that encloses both ends.
  auto first = std::upper_bound(all.begin(), all.end(), low * (1 + kSlack));
  if (first != all.begin()) --first;
  auto last = std::lower_bound(all.begin(), all.end(), high * (1 - kSlack));
  out.at.assign(first, last == all.end() ? last : last + 1);
  out.labels = tick_labels(out.at);
  return out;
}

}  // namespace lockstep
