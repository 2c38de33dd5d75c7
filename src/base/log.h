// The log of the program: rank 0 writes to the console, every rank writes to its own file.
// Libraries never print: they log or throw. There is one log per process. All functions are
// thread-safe.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

enum class LogLevel { kDebug, kInfo, kWarning };

struct LogOptions {
  bool console = true;               // write to standard error too (usually on rank 0 only)
  LogLevel level = LogLevel::kInfo;  // less important lines are dropped
  std::filesystem::path file;        // appended to when not empty
};

void configure_log(
    const LogOptions& options);  // throws MachineError when the file cannot be opened
void write_log(LogLevel level, std::string_view text);

// Shows a line that is redrawn in place on a terminal and printed as a new line elsewhere. It goes
// to the log file too.
void show_progress(std::string_view line);
void end_progress();  // keeps the shown line and moves to the next one

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
