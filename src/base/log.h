// Log: rank 0 to the console, every rank to its own file; libraries never print, they log or throw.
// One process-wide log, safe to use from any thread.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

enum class LogLevel { kDebug, kInfo, kWarning };

struct LogOptions {
  bool console = true;               // also to standard error (rank 0 only, usually)
  LogLevel level = LogLevel::kInfo;  // less important lines are dropped
  std::filesystem::path file;        // appended to when not empty
};

void configure_log(
    const LogOptions& options);  // throws MachineError when the file cannot be opened
void write_log(LogLevel level, std::string_view text);

// A line that is redrawn in place on a terminal and printed in full elsewhere (rank 0 only).
void show_progress(std::string_view line);
void end_progress();  // keeps what is shown and goes to the next line

template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep
