#include "base/log.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>

#include "base/date.h"
#include "base/error.h"

namespace lockstep {

namespace {

struct Log {
  std::mutex mutex;
  LogOptions options;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{nullptr, std::fclose};
  bool progress_shown = false;
};

Log& the_log() {
  static Log log;
  return log;
}

std::string time_stamp() {
  auto now = std::chrono::system_clock::now();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  return fmt::format("{}.{:03}", local_date(seconds, "%Y-%m-%d %H:%M:%S"), millis.count() % 1000);
}

void write_to_file(Log& log, std::string_view text) {
  if (!log.file) return;
  fmt::print(log.file.get(), "{} {}\n", time_stamp(), text);
  std::fflush(log.file.get());
}

bool on_terminal() {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  return terminal;
}

}  // namespace

void configure_log(const LogOptions& options) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  log.options = options;
  log.file.reset();
  if (options.file.empty()) return;
  log.file.reset(std::fopen(options.file.c_str(), "a"));
  if (!log.file) throw MachineError("{}: cannot be opened for the log", options.file.string());
}

void write_log(LogLevel level, std::string_view text) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  if (level < log.options.level) return;
  const char* mark = level == LogLevel::kWarning ? "warning: " : "";
  write_to_file(log, fmt::format("{}{}", mark, text));
  if (!log.options.console) return;
  if (log.progress_shown) fmt::print(stderr, "\n");
  log.progress_shown = false;
  fmt::print(stderr, "{}{}\n", mark, text);
}

void show_progress(std::string_view line) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  write_to_file(log, line);
  if (!log.options.console) return;
  if (on_terminal()) {
    fmt::print(stderr, "\r{}\x1b[K", line);
    std::fflush(stderr);
    log.progress_shown = true;
  } else {
    fmt::print(stderr, "{}\n", line);
  }
}

void end_progress() {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  if (log.progress_shown) fmt::print(stderr, "\n");
  log.progress_shown = false;
}

}  // namespace lockstep
