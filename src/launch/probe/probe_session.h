// A conversation with one host: `lockstep probe` there, through ssh or as a child of this process,
// with one connection for all questions.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/descriptor.h"
#include "base/error.h"
#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

// Calls f(), which reads answers of a host. Throws MachineError that names `whom` where one has
// another shape than this version expects, and what f() throws.
template <class F>
auto reading_answers(const std::string& whom, const F& f) {
  try {
    return f();
  } catch (const nlohmann::json::exception& error) {
    MachineError unreadable("{}: an answer that this version does not understand", whom);
    unreadable.set_cause(error.what());
    unreadable.set_advice("the same lockstep on all hosts: lockstep cluster setup copies it");
    throw unreadable;
  }
}

class ProbeSession {
 public:
  // Starts the probe; whether it answers shows when it is asked. Throws MachineError when no
  // process can be started here. Call it before other threads run.
  ProbeSession(Host host, const RemoteOptions& options);
  // Closes the connection, which ends the other side, and leaves no process behind here.
  ~ProbeSession();
  ProbeSession(const ProbeSession&) = delete;
  ProbeSession& operator=(const ProbeSession&) = delete;

  const Host& host() const { return host_; }

  // Sends {"ask": question, ...} and returns the answer. Throws MachineError that names the host,
  // with the meaning of ssh's end (remote_error), for a missing answer within the limit, or for
  // what the other side could not do. Different threads may use different sessions, but each
  // session only one at a time.
  nlohmann::ordered_json ask(const std::string& question, nlohmann::ordered_json request,
                             std::chrono::milliseconds limit);

  // How far the host's clock is ahead of ours, and the round trip of the fastest of several tries:
  // the error is at most half of that (as in NTP, RFC 5905, section 8).
  struct Clock {
    double ahead_seconds = 0, round_trip_seconds = 0;
  };
  Clock read_clock();

 private:
  std::string read_line(std::chrono::steady_clock::time_point end);
  void read_some(int milliseconds);
  [[noreturn]] void fail_ended();

  Host host_;
  pid_t pid_ = -1;
  Descriptor to_, from_, errors_;
  std::string pending_, error_text_;
};

}  // namespace lockstep
