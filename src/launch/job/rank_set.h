// The ranks of one job that run on this host: started, watched and stopped together, leaving no
// process of theirs behind. The launcher uses it for its own machine, the agent
// (launch/job/agent.h) for every other; events go to a listener.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/job/rank_nursery.h"
#include "launch/job/rank_process.h"
#include "launch/processes/event_loop.h"
#include "launch/processes/orphan_killer.h"
#include "launch/processes/rank_output.h"

namespace lockstep {

inline constexpr int kMostLocalRanks = 256;

// What one attempt starts on one host.
struct StartOrder {
  std::vector<std::string> command;         // program and arguments; "" as program: lockstep itself
  int first_rank = 0, ranks = 1, size = 1;  // this host's ranks, of `size` in all
  int attempt = 0;                          // restarts before this one
  std::string run_id;
  std::string secret;     // of this attempt: 32 hexadecimal digits
  std::string host;       // its name, as the user gave it; empty without a host list
  std::string address;    // of this host towards the others; empty: one host only
  std::string interface;  // that has this address
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  std::vector<std::string> environment;  // NAME=value from the user; they come before all others
  int64_t grace_milliseconds = 10000;    // from SIGTERM to SIGKILL when the launcher is gone
  bool pin = false;                      // cores of its own for each rank (cores_of_rank)
  std::array<bool, 2> terminal = {false, false};  // does rank 0 write to one?
  int rows = 0, columns = 0;                      // of that terminal
};

// Events of ranks, called by the thread that runs the loop. `rank` counts over all hosts.
class RankEvents {
 public:
  virtual ~RankEvents() = default;
  virtual void on_output(int rank, Stream stream, std::string_view bytes) = 0;
  virtual void on_output_end(int rank, Stream stream) = 0;
  virtual void on_report(int rank, const std::string& line) = 0;  // dist/rank/launcher_report.h
  // `status` is as from waitpid; `told` says that the rank had been told to stop.
  virtual void on_rank_end(int rank, int status, bool told) = 0;
  virtual void on_rank_killed(int rank) = 0;  // because it did not stop in time
  virtual void on_idle(int host) = 0;         // no rank is left and all output was delivered
};

class RankSet {
 public:
  // Starts the orphan killer. on_idle() gets `host`. REQUIRES that no other thread runs.
  RankSet(EventLoop& loop, RankEvents& events, int host);
  ~RankSet();  // kills what still runs
  RankSet(const RankSet&) = delete;
  RankSet& operator=(const RankSet&) = delete;

  // `store` is the listening socket on which rank 0, if among these, serves the rendezvous store;
  // it is closed here. Throws ConfigError for a missing program, MachineError when the system
  // refuses; then nothing runs. REQUIRES idle().
  void start(const StartOrder& order, Descriptor store);

  // Sends SIGTERM to all running ranks, unless they know already (`tell` is false), and SIGKILL
  // after the grace time.
  void stop(std::chrono::milliseconds grace, bool tell = true);
  void kill();

  void collect_ends();                     // called after SIGCHLD
  void check_time(Clock::time_point now);  // called when a deadline has passed
  std::optional<Clock::time_point> next_deadline() const;

  bool idle() const { return ranks_.empty(); }
  // Pauses reading output that arrives faster than it can be forwarded.
  void pause_output(bool pause);

 private:
  enum Source { kOutput, kErrors, kReports, kSources };
  struct Rank {
    RankProcess process;
    bool running = true;
    std::string report = "";  // an unfinished line
  };
  void start_each(const std::vector<RankCommand>& commands);
  void start_by_nursery(const std::vector<RankCommand>& commands);
  void take_births();
  void end_unborn(int status);
  RankCommand command_of(const StartOrder& order, int local_rank, const Descriptor& store) const;
  Descriptor& source(int index, int which);
  void watch_output(int index, bool watched);
  void read(int index, int which);
  void take_reports(int index, std::string_view bytes);
  void finish_when_done();
  bool any_running() const;

  EventLoop& loop_;
  RankEvents& events_;
  int host_;
  OrphanKiller orphan_killer_;
  std::vector<Rank> ranks_;
  std::optional<RankNursery> nursery_;  // while ranks have no processes yet
  int first_rank_ = 0;
  bool stopping_ = false, paused_ = false;
  std::optional<Clock::time_point> kill_at_, drain_until_;
};

// Returns the environment of one rank: ours without any launcher's variables (clear_list), plus
// lockstep's and those from the user.
std::vector<std::string> environment_of_rank(const StartOrder& order, int local_rank, int threads,
                                             int store_descriptor);

}  // namespace lockstep
