// Dates as text, by strftime(3).
#pragma once

#include <ctime>
#include <string>

namespace lockstep {

// Formats seconds since the epoch, in UTC or in this machine's zone, to less than 64 bytes.
std::string utc_date(std::time_t when, const char* format);
std::string local_date(std::time_t when, const char* format);

}  // namespace lockstep
