// The seam between the launcher and its hosts: this machine's ranks directly, others' through an
// agent. Orders return at once; what comes of them is told to the listener, by the thread that runs
// the loop.
#pragma once

#include <memory>

#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"
#include "launch/job/agent_protocol.h"

namespace lockstep {

class HostEvents : public RankEvents {
 public:
  virtual void on_ready(int host, const AgentHello& hello) = 0;
  virtual void on_prepared(int host, const Prepared& prepared) = 0;
  virtual void on_store_open(int host, int port) = 0;
  virtual void on_told(int host, int signal) = 0;  // the machine was asked to go
  // The last that is heard of it. `final`: asking again would not help.
  virtual void on_lost(int host, const Error& why, bool final) = 0;
  virtual void on_host_words(int host, const std::string& line) = 0;  // ssh's or the agent's own
};

class HostControl {
 public:
  virtual ~HostControl() = default;  // ends what runs there
  virtual void prepare(const PrepareOrder& order) = 0;
  virtual void open_store(const std::string& address) = 0;
  virtual void start(const StartOrder& order) = 0;
  virtual void stop(std::chrono::milliseconds grace, bool tell) = 0;
  virtual void kill() = 0;
  virtual void leave() = 0;  // nothing runs there any more and nothing shall: its agent may end
  virtual void collect_ends() = 0;  // when SIGCHLD came
  virtual void check_time(Clock::time_point now) = 0;
  virtual std::optional<Clock::time_point> next_deadline() const = 0;
};

// This machine's ranks as children of this very process. REQUIRES: no other thread runs.
std::unique_ptr<HostControl> make_local_host(EventLoop& loop, HostEvents& events, int host);

struct AgentPlace {
  Host host;
  int index = 0;  // what events say
  RemoteOptions remote;
  std::chrono::milliseconds silence{5000};  // that means that the other is gone, on both sides
  std::optional<ProcessId> replaces;        // the agent that was there before
};

// Starts an agent there and listens to it: on_ready() or on_lost() follow. Throws MachineError when
// not even ssh can be started.
std::unique_ptr<HostControl> make_remote_host(EventLoop& loop, HostEvents& events,
                                              const AgentPlace& place);

}  // namespace lockstep
