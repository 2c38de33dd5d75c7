// Formats figures for the answers and drawings of a report.
#pragma once

#include <string>

namespace lockstep {

std::string milliseconds(double seconds);  // "1,283 ms", "8.21 ms"
std::string percent(double share);         // "12.3 %"

}  // namespace lockstep
