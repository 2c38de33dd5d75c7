#include "report/draw/figure_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/text.h"

namespace lockstep {

std::string milliseconds(double seconds) {
  const double ms = seconds * 1e3;
  return ms < 100 ? fmt::format("{:.3g} ms", ms) : with_commas(std::llround(ms)) + " ms";
}

std::string percent(double share) {
  return fmt::format("{:.{}f} %", share * 100, std::abs(share) < 0.0995 ? 1 : 0);
}

}  // namespace lockstep
