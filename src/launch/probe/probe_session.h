// One host that answers: `lockstep probe` there, through ssh or as a child of this process, one
// connection for all questions.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/descriptor.h"
#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

class ProbeSession {
 public:
  // Starts it; answers come, or not, when asked. Throws MachineError when no process can be
  // started here. Call before other threads run.
  ProbeSession(Host host, const RemoteOptions& options);
  // Closes the connection, by which the other side ends, and does not leave a process here.
  ~ProbeSession();
  ProbeSession(const ProbeSession&) = delete;
  ProbeSession& operator=(const ProbeSession&) = delete;

  const Host& host() const { return host_; }

  // {"ask": question, ...} and the answer. Throws MachineError that names the host: what ssh's end
  // means (remote_error), no answer within the time, or what the other side could not do.
  // Sessions may be asked by several threads, each by one at a time.
  nlohmann::ordered_json ask(const std::string& question, nlohmann::ordered_json request,
                             std::chrono::milliseconds limit);

  // Seconds that the host's clock is ahead of ours, and how long the way there and back took in the
  // quickest of several tries: the error is at most half of that (as in NTP, RFC 5905, section 8).
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
