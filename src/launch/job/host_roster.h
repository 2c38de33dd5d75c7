// The hosts of a job: which of them are there, which are waited for, and when an absent one is
// tried again. What the job does about it is launch/job/supervisor.h's matter. It has no clock.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/processes/event_loop.h"

namespace lockstep {

struct SupervisedHost {
  std::string name;  // empty: this machine, which messages need not name
  int slots = 1;
  bool away = false;  // known to be: the first start does not wait for it
};

// One start of all ranks.
struct Attempt {
  int number = 0;          // from 0: LOCKSTEP_ATTEMPT
  std::vector<int> hosts;  // that take part, ascending; ranks are numbered in this order
  int ranks = 0;
  std::string secret;  // by which its ranks know each other (LOCKSTEP_SECRET): the launcher's
};

class HostRoster {
 public:
  using Time = Clock::time_point;
  using milliseconds = std::chrono::milliseconds;

  struct Entry {
    SupervisedHost is;
    enum { kAway, kConnecting, kReady, kActive } state = kAway;  // active: its ranks run
    bool awaited = true;                  // until the host timeout, no attempt starts without it
    int losses = 0;                       // in a row
    std::optional<Time> retry_at = {};    // while it is away
    std::optional<Time> left_until = {};  // asked to stop: left alone so long
    std::optional<Error> why = {};        // why it is away
  };

  // `needed`: enough to go on with, 0: all of them; `poll`: between tries to reach one that nobody
  // waits for.
  HostRoster(std::vector<SupervisedHost> hosts, int needed, milliseconds poll);

  Entry& operator[](int host) { return entries_[host]; }
  const Entry& operator[](int host) const { return entries_[host]; }
  std::size_t size() const { return entries_.size(); }
  const std::string& name(int host) const { return entries_[host].is.name; }

  // The first tries to reach those that are known to be away.
  void begin(Time now);
  void set_connecting(int host);
  void set_away(int host, const Error& why, Time now);  // and when to try it again
  // The host was asked to stop: nobody tries it before that time.
  void leave_alone(int host, Time until);
  // Another machine, or the same one anew, takes a missing host's place. Returns the name that the
  // place had.
  std::string replace(int host, const std::string& name, Time now);
  void progressed();   // those whose ranks run are reliable again
  void end_attempt();  // active hosts are ready ones
  // Gives up on waited-for hosts that are not ready. Returns them.
  std::vector<int> stop_waiting(Time now);
  // Makes all ready hosts active, waited for from now on.
  Attempt take_ready(int number);

  int ready() const;
  bool enough() const;       // ready ones, to go on with
  bool all_awaited() const;  // are ready
  bool connecting() const;   // at least one
  bool any_active(const std::vector<int>& hosts) const;
  std::vector<int> missing() const;               // away, or tried again, ascending
  std::vector<int> awaited_away(Time now) const;  // and not left alone
  // The hosts that are to be tried again now: of those that are waited for only when `gathering`.
  std::vector<int> due(bool gathering, Time now) const;
  std::optional<Time> next_try(bool gathering) const;

  // Says which hosts are not there and why, as the error that ends a job: of a host's own where
  // only one is missing at the first start. `timeout`: how long they had to answer.
  Error absence(bool started, milliseconds timeout) const;

 private:
  void retry_later(Entry& host, Time now);

  std::vector<Entry> entries_;
  int needed_;
  milliseconds poll_;
};

}  // namespace lockstep
