// The interface between the launcher and its hosts: this machine's ranks directly, others' through
// an agent. Orders return at once; the thread that runs the loop tells the listener what comes of
// them.
#pragma once

#include <memory>

#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"
#include "launch/job/agent_protocol.h"
#include "launch/job/notice_watch.h"

namespace lockstep {

class HostEvents : public RankEvents {
 public:
  virtual void on_ready(int host, const AgentHello& hello) = 0;
  virtual void on_prepared(int host, const Prepared& prepared) = 0;
  virtual void on_store_open(int host, int port) = 0;
  virtual void on_told(int host, int signal) = 0;  // the machine was asked to stop
  // The machine is about to be taken away, or is not any more.
  virtual void on_notice(int host, const HostNotice& notice) = 0;
  // The last event of this host. `final`: another attempt would not help.
  virtual void on_lost(int host, const Error& why, bool final) = 0;
  virtual void on_host_words(int host, const std::string& line) = 0;  // ssh's output or the agent's
  virtual void on_answer(int host, char kind, std::string_view payload) = 0;  // to ask()
};

class HostControl {
 public:
  virtual ~HostControl() = default;  // ends what runs there
  virtual void prepare(const PrepareOrder& order) = 0;
  virtual void open_store(const std::string& address) = 0;
  virtual void start(const StartOrder& order) = 0;
  virtual void stop(std::chrono::milliseconds grace, bool tell) = 0;
  virtual void kill() = 0;
  // Sends kAskCopies, kPowerOff or kStandDown; answered by on_answer(), of this machine's own ranks
  // never.
  virtual void ask(char kind, const std::string& payload) = 0;
  virtual void leave() = 0;         // nothing runs there and nothing will: its agent may end
  virtual void collect_ends() = 0;  // called after SIGCHLD
  virtual void check_time(Clock::time_point now) = 0;
  virtual std::optional<Clock::time_point> next_deadline() const = 0;
};

// Controls this machine's ranks as children of this process. REQUIRES that no other thread runs.
std::unique_ptr<HostControl> make_local_host(EventLoop& loop, HostEvents& events, int host,
                                             const SpotOptions& spot);

struct AgentPlace {
  Host host;
  int index = 0;  // the host number in events
  RemoteOptions remote;
  std::chrono::milliseconds silence{5000};  // after which each end considers the other gone
  std::optional<ProcessId> replaces;        // the agent that ran there before
  std::vector<std::string> words;           // further ones; then "--host" and the host's name
  SpotOptions spot;
};

// Starts an agent there and listens to it; on_ready() or on_lost() follows. Throws MachineError
// when not even ssh can be started.
std::unique_ptr<HostControl> make_remote_host(EventLoop& loop, HostEvents& events,
                                              const AgentPlace& place);

}  // namespace lockstep
