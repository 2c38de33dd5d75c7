// Helpers that express times in seconds.
#pragma once

#include <chrono>
#include <cmath>

namespace lockstep {

inline double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return seconds_of(std::chrono::steady_clock::now() - start);
}

// Returns the seconds since 1970, rounded to milliseconds.
inline double unix_seconds() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return std::round(now.count() * 1000) / 1000;
}

}  // namespace lockstep
