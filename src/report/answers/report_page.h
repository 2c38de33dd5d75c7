// Renders a report as one self-contained HTML file. Plots are SVG, in print and where scripts do
// not run; with dygraphs, which CMake builds into the program (cmake/Charts.cmake), line plots
// become charts that zoom.
#pragma once

#include <string>
#include <string_view>

#include "report/answers/report_text.h"

namespace lockstep {

// The charting library's script, style and licence; empty when it was missing at build time.
struct ChartLibrary {
  std::string_view script, style, licence;
};
ChartLibrary chart_library();

std::string report_page(const Report& report);

}  // namespace lockstep
