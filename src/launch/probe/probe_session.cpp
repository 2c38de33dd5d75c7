#include "launch/probe/probe_session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "launch/processes/child_process.h"
#include "launch/processes/descriptor.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;
using Steady = std::chrono::steady_clock;

}  // namespace

ProbeSession::ProbeSession(Host host, const RemoteOptions& options) : host_(std::move(host)) {
  std::signal(SIGPIPE, SIG_IGN);  // write() tells when a host is gone
  Pipe in = open_pipe(), out = open_pipe(), err = open_pipe();
  const std::string text = lockstep_text(options, {"probe"});
  pid_ = start_process(host_command(host_, options, text), in.read_end.get(), out.write_end.get(),
                       err.write_end.get());
  to_ = std::move(in.write_end);
  from_ = std::move(out.read_end);
  errors_ = std::move(err.read_end);
  ::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
}

ProbeSession::~ProbeSession() {
  to_.close();
  for (int tries = 0; pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++tries) {
    constexpr int kPatience = 100;  // of 10 ms each
    if (tries == kPatience) ::kill(-pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void ProbeSession::read_some(int milliseconds) {
  pollfd wanted[2] = {{from_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}};
  ::poll(wanted, 2, milliseconds);
  char buffer[16384];
  auto take = [&](Descriptor& from, std::string& into) {
    if (!from.open()) return;
    const ssize_t n = ::read(from.get(), buffer, sizeof buffer);
    if (n > 0) into.append(buffer, static_cast<std::size_t>(n));
    if (n == 0) from.close();
  };
  take(from_, pending_);
  take(errors_, error_text_);
}

// Reads all that the process says before its end is explained.
void ProbeSession::fail_ended() {
  const Steady::time_point end = Steady::now() + std::chrono::seconds(2);
  while (errors_.open() && Steady::now() < end) read_some(100);
  int status = 0;
  while (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == 0) {
    if (Steady::now() > end) ::kill(-pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  pid_ = -1;
  if (status != 0) throw remote_error(host_, status, error_text_);
  MachineError error("{}: its lockstep ended without an answer", host_.name);
  error.set_cause(error_text_);
  throw error;
}

std::string ProbeSession::read_line(Steady::time_point end) {
  for (;;) {
    const std::size_t at = pending_.find('\n');
    if (at != std::string::npos) {
      std::string line = pending_.substr(0, at);
      pending_.erase(0, at + 1);
      return line;
    }
    if (!from_.open()) fail_ended();
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Steady::now());
    if (left.count() <= 0) return "";
    read_some(static_cast<int>(std::min<int64_t>(left.count(), 1000)));
  }
}

Json ProbeSession::ask(const std::string& question, Json request, std::chrono::milliseconds limit) {
  const Steady::time_point end = Steady::now() + limit;
  if (pid_ < 0) throw MachineError("{}: the connection has ended", host_.name);
  request["ask"] = question;
  if (!write_all(to_.get(), request.dump() + "\n")) fail_ended();
  for (;;) {
    const std::string line = read_line(end);
    if (line.empty() && Steady::now() >= end) break;
    if (line.find("\"probe\"") == std::string::npos || line[0] != '{') continue;  // a login message
    Json answer = Json::parse(line, nullptr, false);
    if (answer.is_discarded() || !answer.contains("probe")) continue;
    if (answer["probe"] == question) return answer;
    // Any other answer is to a question that timed out.
    if (answer["probe"] != "error") continue;
    const std::string message =
        reading_answers(host_.name, [&] { return answer.value("message", "unknown error"); });
    throw MachineError("{}: {}", host_.name, message);
  }
  MachineError error("{}: no answer to \"{}\" within {:.0f} s", host_.name, question,
                     std::chrono::duration<double>(limit).count());
  error.set_cause(error_text_);
  error.set_advice("is the host overloaded, or its network cut?");
  throw error;
}

ProbeSession::Clock ProbeSession::read_clock() {
  constexpr int kTries = 5;
  Clock best{.round_trip_seconds = 1e9};
  auto now = [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  for (int i = 0; i < kTries; ++i) {
    const double before = now();
    const double there = ask("clock", Json::object(), std::chrono::seconds(5)).at("time");
    const double after = now();
    if (after - before >= best.round_trip_seconds) continue;
    best = {.ahead_seconds = there - (before + after) / 2, .round_trip_seconds = after - before};
  }
  return best;
}

}  // namespace lockstep
