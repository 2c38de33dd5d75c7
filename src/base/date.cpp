#include "base/date.h"

namespace lockstep {

namespace {

std::string formatted(const std::tm& parts, const char* format) {
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

}  // namespace

std::string utc_date(std::time_t when, const char* format) {
  std::tm parts{};
  return formatted(*::gmtime_r(&when, &parts), format);
}

std::string local_date(std::time_t when, const char* format) {
  std::tm parts{};
  return formatted(*::localtime_r(&when, &parts), format);
}

}  // namespace lockstep
