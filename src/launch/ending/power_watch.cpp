#include "launch/ending/power_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/program.h"
#include "base/text.h"
#include "dist/rank/machine_key.h"
#include "launch/ending/notice.h"
#include "launch/ending/run_copies.h"
#include "launch/jobs/job_record.h"
#include "launch/processes/descriptor.h"

namespace lockstep {

namespace {

using PowerJson = nlohmann::ordered_json;

constexpr const char* kDefault = "default";
constexpr const char* kAgentName = "lockstep-agent";
constexpr double kLongestSleep = 5, kShortestSleep = 0.2;  // seconds

struct PowerFile {
  PowerOrder order;
  double heard = 0, due = 0;
};

// A home may be shared by many machines, so that each has a file of its own.
fs::path power_path(const char* extension) {
  const std::string key = machine_key();
  const std::string name =
      sha256_hex(std::as_bytes(std::span(key.data(), key.size()))).substr(0, 16);
  return in_home("~/.lockstep/power_off") / (name + extension);
}

std::string file_text(const PowerFile& f) {
  const PowerJson json = {{"command", f.order.command},
                          {"after_seconds", f.order.after_seconds},
                          {"run_folder", f.order.run_folder},
                          {"leads", f.order.leads},
                          {"mirrored", f.order.mirrored},
                          {"anyway", f.order.anyway},
                          {"heard", f.heard},
                          {"due", f.due}};
  return json.dump(1, ' ', false, PowerJson::error_handler_t::replace) + "\n";
}

// Nothing where the file is gone: the watch is over.
std::optional<PowerFile> read_power_file(const fs::path& path) {
  std::error_code none;
  if (!fs::exists(path, none)) return std::nullopt;
  PowerFile out;
  try {
    const PowerJson json = PowerJson::parse(read_file(path));
    json.at("command").get_to(out.order.command);
    json.at("after_seconds").get_to(out.order.after_seconds);
    json.at("run_folder").get_to(out.order.run_folder);
    json.at("leads").get_to(out.order.leads);
    json.at("mirrored").get_to(out.order.mirrored);
    json.at("anyway").get_to(out.order.anyway);
    json.at("heard").get_to(out.heard);
    json.at("due").get_to(out.due);
  } catch (const PowerJson::exception&) {
    return std::nullopt;  // of another version, or by another hand
  } catch (const Error&) {
    return std::nullopt;
  }
  return out;
}

// Agents of this machine, other than this process: those in its network. Those of other users show
// their network to root alone, and count for it alone.
bool other_agents_live() {
  std::error_code none;
  const fs::path own = fs::read_symlink("/proc/self/ns/net", none);
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", none)) {
    const std::string name = entry.path().filename().string();
    int pid = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size() || pid == ::getpid()) {
      continue;
    }
    try {
      if (trim(read_file(entry.path() / "comm")) != kAgentName) continue;
    } catch (const Error&) {  // it has ended
      continue;
    }
    std::error_code unknown;
    if (fs::read_symlink(entry.path() / "ns/net", unknown) == own && !unknown) return true;
  }
  return false;
}

std::string power_command(const std::string& command) {
  if (command != kDefault) return command;
  if (::geteuid() != 0) return "sudo -n systemctl poweroff";
  return find_in_path("systemctl") ? "systemctl poweroff" : "poweroff";
}

void check_may_power_off(const std::string& command) {
  const char* advice =
      "a line of /etc/sudoers.d such as `USER ALL=(root) NOPASSWD: /usr/bin/systemctl poweroff`, "
      "or --power-off-command COMMAND";
  if (command != kDefault) {
    check_shell_command(command, "--power-off-command");
    return;
  }
  if (::geteuid() == 0) {
    if (find_in_path("systemctl") || find_in_path("poweroff")) return;
    throw ConfigError("--power-off: neither systemctl nor poweroff is there");
  }
  if (find_in_path("sudo")) {
    const ProgramEnd end = run_to_end({"sudo", "-n", "-l", "systemctl", "poweroff"});
    if (end.status == 0) return;
  }
  ConfigError error("--power-off: this user may not switch the machine off without a password");
  error.set_advice(advice);
  throw error;
}

void say_in_log(const std::string& text) {
  const Descriptor file(
      ::open(power_path(".log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (file.open()) write_all(file.get(), fmt::format("{:.3f} {}\n", unix_seconds(), text));
}

bool is_copied(const PowerOrder& order) {
  if (order.anyway || order.run_folder.empty()) return true;
  if (!order.leads && order.mirrored) return true;
  try {
    return is_mirrored(look_at_copies(in_home(order.run_folder)));
  } catch (const Error&) {
    return false;
  }
}

void switch_off(const PowerFile& file) {
  const std::string command = power_command(file.order.command);
  say_in_log(fmt::format(
      "{}: {}",
      file.due > 0 ? "the launcher said so"
                   : fmt::format("no word of a launcher for {:.1f} s", unix_seconds() - file.heard),
      command));
  const ProgramEnd end = run_to_end({"/bin/sh", "-c", command});
  std::error_code none;
  fs::remove(power_path(".json"), none);
  if (end.status != 0) {
    say_in_log(fmt::format("it failed with status {}: {}", end.status, trim(end.said)));
  }
}

void watch_power() {
  const fs::path path = power_path(".json");
  double agents_until = 0;  // the last time that an agent was seen counts as a word
  bool said = false;
  for (;;) {
    const std::optional<PowerFile> file = read_power_file(path);
    if (!file) return;
    PowerFacts facts{
        .now = unix_seconds(), .heard = std::max(file->heard, agents_until), .due = file->due};
    const bool ripe = file->due > 0 || facts.now - facts.heard >= file->order.after_seconds;
    facts.agents_live = ripe && other_agents_live();
    if (facts.agents_live && file->due == 0) agents_until = facts.now;
    facts.copied = !ripe || is_copied(file->order);
    const PowerDecision decision = decide_power(file->order, facts);
    if (decision == PowerDecision::kOff) {
      switch_off(*file);
      return;
    }
    if (decision == PowerDecision::kRefuse && !std::exchange(said, true)) {
      say_in_log("not switched off: the newest checkpoint may be here alone");
    }
    const double last = file->due > 0 ? file->due : facts.heard + file->order.after_seconds;
    const double sleep = std::clamp(last - facts.now, kShortestSleep, kLongestSleep);
    std::this_thread::sleep_for(std::chrono::duration<double>(
        decision == PowerDecision::kWait && !facts.agents_live ? sleep : kLongestSleep / 5));
  }
}

// Ends when another process of this machine watches already.
void become_watch() {
  ::setsid();
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::signal(SIGHUP, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_NAME, "lockstep-power");
  ::close_range(0, ~0U, 0);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, 1);
  ::dup2(nothing, 2);
  if (::chdir("/") != 0) return;
  const int lock = ::open(power_path(".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  // One that just ends still holds the lock for as long as it sleeps.
  constexpr int kTries = 20;
  for (int i = 0; lock >= 0 && i < kTries; ++i) {
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0) {
      watch_power();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

// A child of a child, so that nobody has to wait for it.
void start_watch() {
  const pid_t child = ::fork();
  if (child < 0) throw MachineError("cannot start a process: {}", std::strerror(errno));
  if (child > 0) {
    ::waitpid(child, nullptr, 0);
    return;
  }
  if (::fork() == 0) {
    try {
      become_watch();
    } catch (const std::exception&) {  // nobody is there to be told
    }
  }
  ::_exit(0);
}

}  // namespace

PowerDecision decide_power(const PowerOrder& order, const PowerFacts& facts) {
  if (order.command.empty()) return PowerDecision::kWait;
  if (facts.due > 0) {  // the launcher has looked at the copies
    return facts.now >= facts.due && !facts.agents_live ? PowerDecision::kOff
                                                        : PowerDecision::kWait;
  }
  if (facts.agents_live || facts.now - facts.heard < order.after_seconds) {
    return PowerDecision::kWait;
  }
  return facts.copied ? PowerDecision::kOff : PowerDecision::kRefuse;
}

void PowerWatch::arm(const PowerOrder& order) {
  check_may_power_off(order.command);
  order_ = order;
  due_ = 0;
  armed_ = true;
  fs::create_directories(power_path(".json").parent_path());
  write();
  start_watch();
}

void PowerWatch::clear() {
  std::error_code none;
  fs::remove(power_path(".json"), none);
}

void PowerWatch::write() {
  write_file(power_path(".json"), file_text({order_, unix_seconds(), due_}));
  const double pause = std::clamp(order_.after_seconds / 8, 0.2, 10.0);
  next_write_ = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(pause * 1000));
}

void PowerWatch::heard() {
  if (!armed_ || Clock::now() < next_write_) return;
  std::error_code none;
  const bool taken = !fs::exists(power_path(".json"), none);  // an agent of another job cleared it
  try {
    write();
    if (taken) start_watch();
  } catch (const Error&) {  // a full disk: the machine is switched off too early rather than never
  }
}

void PowerWatch::stand_down() {
  if (armed_) clear();
  armed_ = false;
}

void PowerWatch::off_in(std::chrono::milliseconds delay) {
  if (!armed_) return;
  due_ = unix_seconds() + std::chrono::duration<double>(delay).count();
  write();
  start_watch();   // it may have ended since
  armed_ = false;  // nothing after the order changes it
}

}  // namespace lockstep
