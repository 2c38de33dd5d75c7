// A report as one HTML file that needs nothing else. Plots are SVG, in print and where scripts do
// not run; with dygraphs, which CMake puts into the program (cmake/Charts.cmake), plots of lines
// become charts that zoom.
#pragma once

#include <string>
#include <string_view>

#include "report/answers/report_text.h"

namespace lockstep {

// The charting library's script, style and licence; empty texts: it was not there at build time.
struct ChartLibrary {
  std::string_view script, style, licence;
};
ChartLibrary chart_library();

std::string report_page(const Report& report);

}  // namespace lockstep
