// Decides what to do when hosts come and go, ranks fail and signals arrive: when an attempt starts
// and on which hosts, when all ranks stop, whether they start again and after how long. It is
// policy only: it has no clock, starts nothing and is told everything
// (docs/launch.md#what-the-launcher-does).
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/job/host_roster.h"
#include "launch/job/launch_event.h"

namespace lockstep {

// The exit code of a job that was stopped before its budget was spent (docs/errors.md).
inline constexpr int kExitBudget = 6;

struct SupervisorOptions {
  using milliseconds = std::chrono::milliseconds;
  int restarts = 0;                  // in a row, without progress between them
  int min_hosts = 0;                 // enough to continue with; 0: all of them
  milliseconds grace{10000};         // from SIGTERM to SIGKILL: time for a last checkpoint
  milliseconds short_grace{3000};    // when a rank is gone, so that no checkpoint can be saved
  milliseconds host_timeout{60000};  // for a host to answer before it counts as away
  milliseconds poll{10000};          // between tries to reach an absent host; doubles, up to 6 x

  // How long an attempt that lacks hosts waits, beyond host_timeout, for others that take their
  // place (replace()); 0: none will come.
  milliseconds replacement_wait{0};

  // How long a machine that was asked to stop is left alone (spot machines get up to 2 minutes).
  milliseconds reclaim{150000};
};

// How the job ended.
struct JobVerdict {
  int exit_code = kExitOk;
  int interrupted_by = 0;               // the signal that stopped us; 0: none
  std::optional<RankEnd> failure = {};  // of a rank
  std::optional<Error> loss = {};       // of hosts
  bool run_out = false;                 // of money
};

class SupervisorActions {
 public:
  virtual ~SupervisorActions() = default;
  // Answered later by host_ready() or host_lost().
  virtual void connect(int host) = 0;
  virtual void release(int host) = 0;  // ends its agent; no event of it follows
  // Answered by host_idle() or host_lost() for every host of the attempt, after rank_ended() for
  // its ranks.
  virtual void start(const Attempt& attempt) = 0;
  // Stops all ranks: SIGTERM when `tell`, SIGKILL after the grace time.
  virtual void stop(std::chrono::milliseconds grace, bool tell) = 0;
  virtual void kill() = 0;
  virtual void note(const LaunchEvent& event) = 0;
};

class Supervisor {
 public:
  using Time = Clock::time_point;

  // The functions below call `actions`, which must outlive this.
  Supervisor(std::vector<SupervisedHost> hosts, const SupervisorOptions& options,
             SupervisorActions& actions);

  void begin(Time now);
  void host_ready(int host, Time now);
  // `final`: another attempt would not help (another version, no lockstep, no such folder).
  void host_lost(int host, const Error& why, bool final, Time now);
  void host_idle(int host, Time now);
  // Another machine takes the place of `host`. Does nothing unless that is missing.
  void replace(int host, const std::string& name, Time now);
  std::vector<int> missing() const;  // hosts that are away, ascending; empty once the job is over
  // Somebody else asked the machine, or one of its ranks, to stop.
  void host_told(int host, int signal, Time now);
  // The host's cloud takes the machine away at that time, or withdraws that.
  void host_noticed(int host, const HostNotice& notice, Time now);
  void rank_ended(const RankEnd& end);
  void progressed();  // a checkpoint was saved
  void interrupted(int signal, Time now);
  // The budget is nearly spent: all ranks stop, after a checkpoint that may take the grace time,
  // and nothing starts any more.
  void run_out(std::chrono::milliseconds grace, Time now);
  void check_time(Time now);
  std::optional<Time> next_deadline() const;

  const std::optional<JobVerdict>& verdict() const { return verdict_; }  // once the job is over
  const Attempt& attempt() const { return attempt_; }
  int host_of_rank(int rank) const;          // of the current attempt
  std::string name_of_rank(int rank) const;  // "rank 3 on b"
  // When the failure that led to a restart was noticed; nothing before the first one.
  std::optional<Time> failed_at() const { return failed_at_; }

 private:
  enum class Phase { kGathering, kRunning, kStopping, kOver };
  enum class Reason { kFailure, kSignal, kReclaim, kRejoin, kBudget };
  using Host = HostRoster::Entry;

  void connect(int host);
  void gather(Time now, std::chrono::milliseconds delay);
  void try_start(Time now);
  void go_without_missing(Time now);
  void start(Time now);
  void begin_stop(Reason reason, std::chrono::milliseconds grace, bool tell);
  void note_failure(const std::optional<RankEnd>& failure);
  void fail_attempt();
  void lose_active(int host, Time now);
  void finish_if_idle(Time now);
  void decide(Time now);
  void decide_after_failure(const std::optional<RankEnd>& failure, Time now);
  void finish(JobVerdict verdict);
  void finish_without_hosts();
  void give_up_first_start(bool final);
  bool release_reclaimed(Time now);
  bool may_restart(const std::optional<RankEnd>& failure) const;

  SupervisorOptions options_;
  HostRoster hosts_;
  SupervisorActions& actions_;
  Phase phase_ = Phase::kGathering;
  Reason reason_ = Reason::kFailure;
  Attempt attempt_;
  bool started_ = false;  // an attempt ran before
  std::vector<RankEnd> ends_;
  std::optional<Error> host_failure_;  // of the current attempt
  int failures_ = 0;                   // in a row, without progress between them
  int interrupted_by_ = 0, reclaimed_by_ = 0;
  std::set<int> reclaimed_;  // hosts of the attempt that were asked to stop
  bool killed_ = false;
  bool run_out_ = false;
  bool hopeless_ = false;  // the first start has become impossible
  Time now_, not_before_, gather_until_;
  bool overtime_ = false;  // waiting for replacements: enough hosts are all that is needed
  std::optional<Time> settle_until_, failed_at_;
  std::optional<JobVerdict> verdict_;
};

// Returns the time for the ranks of a machine that is taken away in so many seconds: less a margin
// for what follows the ranks' last checkpoint.
std::chrono::milliseconds grace_before(double seconds_left);

// Returns the delay from a failure to the next attempt: none, then 1, 2, 4, ... 60 s.
std::chrono::milliseconds restart_delay(int failures_in_a_row);

}  // namespace lockstep
