// The hosts of a launch: the place of each in the list, the agent that works there now, and what it
// has said of itself. A launch without a list has one seat, this machine's, without an agent.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/job/host_control.h"
#include "launch/job/launcher.h"

namespace lockstep {

struct Seat {
  Host host;
  std::unique_ptr<HostControl> control;
  std::optional<ProcessId> agent;  // the newest; its successor ends it first
  AgentHello hello = {};
  Prepared prepared = {};

  // The address that the others talk to; empty when unknown.
  std::string address() const;
};

class Seats {
 public:
  // All outlive this; `events` hears of hosts from connect() on.
  Seats(const Launch& launch, EventLoop& loop, HostEvents& events);

  Seat& operator[](int host) { return seats_[host]; }
  const Seat& operator[](int host) const { return seats_[host]; }
  bool here() const { return launch_.hosts.hosts.empty(); }  // no list: this machine alone
  int ranks(int host) const { return here() ? launch_.ranks : seats_[host].host.slots; }
  std::vector<Host> hosts() const;
  std::vector<SupervisedHost> supervised() const;
  std::vector<std::string> names() const;                                // of the list
  std::vector<std::string> names_by_rank(const Attempt& attempt) const;  // a rank's host

  void connect(int host);  // starts an agent there, the earlier one's successor
  void release(int host);  // its agent ends; no event of it follows
  // Another machine takes the place.
  void replace(int host, const Host& machine);

  // Whether all hosts of the attempt are one machine under several names.
  bool on_one_machine(const Attempt& attempt) const;
  // Returns the address of another host of the attempt: a host uses the own address from which it
  // routes there. Empty: none is needed, or none is known.
  std::string towards(int host, const Attempt& attempt) const;

  // For the loop.
  void collect_ends();  // after SIGCHLD
  void check_time(Clock::time_point now);
  std::optional<Clock::time_point> next_deadline() const;
  void forget_released() {
    released_.clear();
  }              // call this when no event of theirs is being handled
  void leave();  // nothing will run any more: agents may end

 private:
  const Launch& launch_;
  EventLoop& loop_;
  HostEvents& events_;
  std::vector<Seat> seats_;
  std::vector<std::unique_ptr<HostControl>> released_;  // may still be on the stack
};

}  // namespace lockstep
