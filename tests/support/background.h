// Runs the built program in the background, and reads what its run folder says meanwhile.
#pragma once

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/file.h"

extern char** environ;

namespace lockstep {

// `PROGRAM ARGUMENTS` in the background; the destructor stops it by its process number.
class Background {
 public:
  using Clock = std::chrono::steady_clock;

  Background(const std::string& arguments, const fs::path& output,
             const std::string& program = LOCKSTEP_PROGRAM) {
    std::string command = fmt::format("OMP_NUM_THREADS=1 exec '{}' {} >'{}' 2>&1 </dev/null",
                                      program, arguments, output.string());
    const char* words[] = {"/bin/sh", "-c", command.c_str(), nullptr};
    if (posix_spawn(&process_, words[0], nullptr, nullptr, const_cast<char**>(words), environ) !=
        0) {
      throw std::runtime_error("no process");
    }
  }
  ~Background() {
    if (code_) return;
    kill(process_, SIGTERM);  // a launcher ends its ranks
    if (!wait(15)) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  pid_t process() const { return process_; }
  // Returns its exit code, if it ends within that time.
  std::optional<int> wait(double seconds) {
    auto start = Clock::now();
    int status = 0;
    while (!code_ && seconds_since(start) < seconds) {
      if (waitpid(process_, &status, WNOHANG) == process_) {
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return code_;
  }

 private:
  pid_t process_ = -1;
  std::optional<int> code_;
};

inline nlohmann::json live_of(const fs::path& run) {
  if (!fs::exists(run / "live.json")) return {};
  return nlohmann::json::parse(read_file(run / "live.json"), nullptr, false);
}

// Waits until two ranks have taken more than `steps` steps. Returns live.json then, or null if they
// have not done so within a minute.
inline nlohmann::json wait_for_steps(const fs::path& run, int steps = 3) {
  const auto start = std::chrono::steady_clock::now();
  while (seconds_since(start) < 60) {
    nlohmann::json live = live_of(run);
    if (live.is_object() && live["ranks"].size() == 2 &&
        live["ranks"][1].value("step", 0) > steps && live["ranks"][0].value("step", 0) > steps) {
      return live;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  return {};
}

}  // namespace lockstep
