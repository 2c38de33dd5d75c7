#include "report/run/spread.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

namespace {

// Returns the decimal places with which `value` shows `digits` significant digits.
int places_of(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return std::clamp(digits - 1 - exponent, 0, 12);
}

}  // namespace

std::string spread_text(const Spread& spread) {
  if (spread.count == 0) return "-";
  const bool tiny = spread.mean != 0 && std::abs(spread.mean) < 1e-3;
  if (spread.count == 1 || spread.deviation == 0) {
    constexpr int kDigits = 4;
    return tiny ? fmt::format("{:.3g}", spread.mean)
                : fmt::format("{:.{}f}", spread.mean, places_of(spread.mean, kDigits));
  }
  if (tiny) return fmt::format("{:.3g} ± {:.2g}", spread.mean, spread.deviation);
  const int places = places_of(spread.deviation, 2);
  return fmt::format("{:.{}f} ± {:.{}f}", spread.mean, places, spread.deviation, places);
}

}  // namespace lockstep
