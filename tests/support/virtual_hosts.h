// Makes virtual hosts for a test, each with its own network, processes and sshd (docs/netlab.md).
//
//   TEST(Launch, SurvivesACutOfTwoSeconds) {
//     SKIP_WITHOUT_VIRTUAL_HOSTS();
//     VirtualHosts hosts("[hosts]\nnames = ['a', 'b']\n");
//     HostProgram launch = hosts.start("control", {LOCKSTEP_PROGRAM, "launch", "-H", "a:2,b:2"});
//     hosts.cut("b", 2.0);
//     EXPECT_EQ(launch.wait(30s), 0) << launch.output();
//   }
// `ssh a` works in the control host and in all others; /etc/hosts has every name.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "netlab/lab.h"
#include "support/limits.h"

namespace lockstep {
// Returns why no lab can be made here; empty when one can.
inline std::string no_virtual_hosts() {
  if (::geteuid() != 0) return "virtual hosts need root";
  if (::access("/dev/net/tun", R_OK | W_OK) != 0) return "virtual hosts need /dev/net/tun";
  if (::access("/usr/sbin/sshd", X_OK) != 0) return "virtual hosts need openssh-server";
  try {
    Lab lab(read_lab_config("[hosts]\nnames = ['a']\nsshd = false\n", "probe"), {}, {});
  } catch (const Error& error) {
    return error.describe();
  }
  return "";
}
}  // namespace lockstep

#define SKIP_WITHOUT_VIRTUAL_HOSTS()                                          \
  do {                                                                        \
    static const std::string reason = lockstep::no_virtual_hosts();           \
    if (!reason.empty()) GTEST_SKIP() << "no virtual hosts here: " << reason; \
  } while (false)

namespace lockstep {

// A program in a host; the destructor kills it if it still runs.
class HostProgram {
 public:
  HostProgram(Lab& lab, const std::string& host, std::vector<std::string> words,
              std::vector<std::string> environment) {
    HostCommand command;
    command.words = std::move(words);
    command.environment = std::move(environment);
    command.new_group = true;
    Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    Descriptor out(::open(file().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    command.input = null.get();
    command.output = command.error = out.get();
    process_ = lab.start(host, command);
  }
  ~HostProgram() {
    if (ended_) return;
    ::kill(-process_.program, SIGKILL);  // the whole process group, which is its own
    ::waitpid(process_.parent, nullptr, 0);
  }
  HostProgram(const HostProgram&) = delete;
  HostProgram& operator=(const HostProgram&) = delete;

  pid_t pid() const { return process_.program; }                       // as this process sees it
  void signal(int number) const { ::kill(process_.program, number); }  // to the program alone
  std::string output() const { return read_file(file()); }             // both streams, so far

  // Returns its exit code, 128 + n after signal n; -1 when it still runs at the limit.
  int wait(std::chrono::milliseconds limit) {
    auto end = std::chrono::steady_clock::now() + limit;
    while (!ended_) {
      int status = 0;
      if (::waitpid(process_.parent, &status, WNOHANG) == process_.parent) {
        ended_ = true;
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      } else if (std::chrono::steady_clock::now() > end) {
        return -1;
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    return code_;
  }
  // Returns the seconds until its output holds `text`, behind `after` where that is given; -1 when
  // it does not within the limit.
  double wait_for(const std::string& text, std::chrono::milliseconds limit,
                  const std::string& after = "") const {
    auto start = std::chrono::steady_clock::now();
    auto passed = [&] { return std::chrono::steady_clock::now() - start; };
    auto is_there = [&] {
      const std::string all = output();
      const std::size_t from = all.find(after);
      return from != std::string::npos && all.find(text, from + after.size()) != std::string::npos;
    };
    while (!is_there()) {
      if (passed() > limit) return -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return std::chrono::duration<double>(passed()).count();
  }
  // The same, and the test ends, with the output so far, where the text does not come.
  void expect(const std::string& text, const std::string& after = "") const {
    if (wait_for(text, std::chrono::seconds(kCommandSeconds), after) >= 0) return;
    throw std::runtime_error(
        fmt::format("no \"{}\" within {} s in\n{}", text, kCommandSeconds, output()));
  }

 private:
  fs::path file() const { return folder_.path() / "output"; }
  TemporaryFolder folder_;
  HostProcess process_;
  bool ended_ = false;
  int code_ = -1;
};

class VirtualHosts {
 public:
  // `toml` is a lab's file (docs/netlab.md). Throws what Lab throws.
  explicit VirtualHosts(const std::string& toml)
      : lab_(read_lab_config(toml, "lab"), {}, LOCKSTEP_PROGRAM) {}

  Lab& lab() { return lab_; }
  const Lab& lab() const { return lab_; }
  fs::path ssh_config() const { return lab_.folder() / "ssh_config"; }  // for ssh from outside
  std::unique_ptr<HostProgram> start(const std::string& host, std::vector<std::string> words,
                                     std::vector<std::string> environment = {}) {
    return std::make_unique<HostProgram>(lab_, host, std::move(words), std::move(environment));
  }
  // Runs a shell command to its end; returns exit code and both streams.
  std::pair<int, std::string> run(const std::string& host, const std::string& shell,
                                  std::chrono::milliseconds limit = std::chrono::seconds(30)) {
    auto program = start(host, {"/bin/sh", "-c", shell});
    int code = program->wait(limit);
    return {code, program->output()};
  }

  void cut(const std::string& host, double seconds = 0) { apply("cut", host, "both", seconds); }
  void cut_outgoing(const std::string& host, double seconds = 0) {
    apply("cut", host, "out", seconds);
  }
  void heal(const std::string& host) { apply("heal", host, "both", 0); }
  void power_off(const std::string& host) { apply("power-off", host, "both", 0); }
  void power_on(const std::string& host) { apply("power-on", host, "both", 0); }

 private:
  void apply(const std::string& action, const std::string& host, const std::string& direction,
             double seconds) {
    LabEvent event;
    event.action = action;
    event.hosts = {host};
    event.direction = direction;
    event.network = lab_.config().separate_control() ? "data" : "";
    event.lasts = seconds;
    lab_.apply(event);
  }
  Lab lab_;
};

}  // namespace lockstep
