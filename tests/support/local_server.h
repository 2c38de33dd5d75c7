// Runs tests/support/archive_server.py for a test; the server ends with this object or this
// process.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"

extern char** environ;

namespace lockstep {

class LocalServer {
 public:
  // Serves `folder`; `faults` is the JSON that the script describes.
  explicit LocalServer(const fs::path& folder, const std::string& faults = "{}",
                       const std::string& script = "archive_server.py") {
    write_file(own_.path() / "faults.json", faults);
    write_file(own_.path() / "log", "");
    std::vector<std::string> words{LOCKSTEP_PYTHON,
                                   LOCKSTEP_SOURCE "/tests/support/" + script,
                                   folder.string(),
                                   "--faults",
                                   (own_.path() / "faults.json").string(),
                                   "--log",
                                   (own_.path() / "log").string()};
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    int to[2];
    int from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
      throw std::runtime_error("no pipe");
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    int status = posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    input_ = to[1];
    std::string port;
    for (char c; status == 0 && ::read(from[0], &c, 1) == 1 && c != '\n';) port += c;
    ::close(from[0]);
    if (port.empty()) throw std::runtime_error("the local server did not start");
    url_ = "http://127.0.0.1:" + port;
  }
  ~LocalServer() {
    ::close(input_);
    ::waitpid(pid_, nullptr, 0);
  }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  const std::string& url() const { return url_; }
  // Changes the faults, where the script reads them at every request (s3_server.py).
  void set_faults(const std::string& faults) const {
    write_file(own_.path() / "faults.json", faults);
  }
  // Returns one "GET /path RANGE IF-RANGE STATUS" per request.
  std::vector<std::string> requests() const { return read_lines(own_.path() / "log"); }

 private:
  TemporaryFolder own_;
  pid_t pid_ = -1;
  int input_ = -1;
  std::string url_;
};

}  // namespace lockstep
