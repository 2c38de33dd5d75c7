// Heartbeats tell which ranks are alive: every rank reports its progress to rank 0 twice a second,
// over a TCP connection of its own, and rank 0 answers. So a rank that ended, is stopped or hangs
// is named within seconds, by every rank alike, with what it did last - which neither Gloo nor a
// broken connection says (docs/launch.md#when-a-rank-is-lost).
//
// Each process has one thread for it, and one that samples the use of the host
// (base/host_sampler.h). The verdict is final: whatever fails after it follows from it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/host_sampler.h"
#include "dist/liveness/failure_detector.h"
#include "dist/liveness/stop_news.h"
#include "dist/rank/token.h"

namespace lockstep {

class LeaderLinks;
class FollowerLink;

class Heartbeat {
 public:
  Heartbeat(int rank, int size, const DetectorOptions& options);
  ~Heartbeat();  // calls leave(false) if leave() was not called
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  RankProgress& progress() { return progress_; }
  // What this rank knows of a stop; with one rank, too.
  StopNews& stop_news() { return stop_; }

  // On rank 0: listens on `address` and returns the text that the others need for
  // join(). `secret`: of the attempt. Throws MachineError.
  std::string open(const std::string& address, const Token& secret);
  // On the other ranks: connects to rank 0. Throws MachineError.
  void join(const std::string& meeting, const Token& secret);
  // Starts the thread, after open or join, or with one rank right away. `interface`: whose traffic
  // is sampled; may be empty. `for_machine`: this rank samples its machine for all ranks there.
  void start(const std::string& interface, bool for_machine = true);
  bool is_running() const { return thread_.joinable(); }

  // Returns the verdict, once there is one. Cheap while there is none.
  std::optional<RankVerdict> verdict();
  // Reports to rank 0 that an operation failed here, as `trouble` says, and waits for the verdict
  // on who is at fault, usually some ms. Returns nothing when rank 0 ended normally or does not
  // answer in time.
  std::optional<RankVerdict> ask(const std::string& trouble);
  // Reports that this rank ends for a reason of its own: the others are told, and stop.
  void report_failure(const std::string& why);
  // Ends the thread. `clean`: all is done; else the others are told that this rank failed.
  void leave(bool clean);

  // The heartbeat's thread calls `interrupt` when there is a verdict; it ends
  // what this rank waits in.
  void on_verdict(std::function<void()> interrupt);
  // Called when the rank does not end by itself after a verdict, because it is stuck outside the
  // World's operations. The process then ends with exit code 4.
  void when_stuck(std::function<void(const RankVerdict&)> last_words);
  // Returns all ranks as this one knows them: rank 0 from their heartbeats, the others from rank
  // 0's answers.
  std::vector<RankSeen> ranks();
  // On rank 0: returns new warnings about ranks that the others wait for, each once. The
  // heartbeat's thread does not log them itself, because it never waits for a disk.
  std::vector<std::string> take_warnings();

 private:
  using Time = RankSeen::Time;

  void run();
  void turn(Time now);
  void wait_for_news(std::chrono::milliseconds most);
  void look_at_myself(Time now);
  void look_at_host(RankSeen& mine);
  void judge_leader(Time now);
  void settle(const RankVerdict& verdict);
  void end_if_stuck(Time now);
  void spread_stop();
  void lead_stop();
  void say_farewell();
  void wake();

  const int rank_, size_;
  const DetectorOptions options_;
  RankProgress progress_;
  StopNews stop_;
  FailureDetector judge_;
  std::unique_ptr<LeaderLinks> leader_;
  std::unique_ptr<FollowerLink> follower_;
  int wake_;  // eventfd

  std::mutex mutex_;  // guards what follows
  std::condition_variable decided_;
  std::vector<RankSeen> ranks_;
  std::optional<RankVerdict> verdict_;
  std::unique_ptr<HostSampler> sampler_;
  std::function<void(const RankVerdict&)> last_words_;
  std::string new_trouble_, new_failure_;  // to be reported to rank 0
  std::vector<std::string> warnings_;      // not taken yet
  bool leaving_ = false, clean_ = false;
  bool stop_spread_ = false, stop_settled_ = false;  // of the heartbeat's thread
  Time verdict_time_{}, next_beat_{}, last_turn_{};

  std::atomic<bool> is_decided_{false}, noticed_{false};
  std::mutex interrupting_;  // held while interrupt_ runs
  std::function<void()> interrupt_;
  std::thread thread_;  // last, because it uses all the others
};

}  // namespace lockstep
