// The ranks' signs of life: every rank tells rank 0 twice a second where it stands, over a TCP
// connection of its own, and rank 0 answers. So a rank that ended, stands still or hangs is named
// within seconds, by every rank alike, with what it did last - which neither Gloo nor a broken
// connection tells (docs/launch.md#when-a-rank-is-lost).
//
// One thread a process, and one that samples the use of the host (base/host_sampler.h). The verdict
// is final: whatever fails after it follows from it.
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

namespace lockstep {

class LeaderLinks;
class FollowerLink;

class Heartbeat {
 public:
  Heartbeat(int rank, int size, const DetectorOptions& options);
  ~Heartbeat();  // leaves, if that was not done
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  RankProgress& progress() { return progress_; }

  // On rank 0: listens on `address`; the others get the text that it returns. MachineError.
  std::string open(const std::string& address);
  // On the others. MachineError.
  void join(const std::string& meeting);
  // After open or join, or alone with one rank. `interface`: whose traffic is watched; may be
  // empty. `for_machine`: this rank samples its machine, for all ranks there.
  void start(const std::string& interface, bool for_machine = true);
  bool is_running() const { return thread_.joinable(); }

  // The verdict, once there is one. Cheap while there is none.
  std::optional<RankVerdict> verdict();
  // An operation failed here, as `trouble` says: who is at fault? Waits for the verdict, usually
  // some ms; none when rank 0 is gone in peace or does not say in time.
  std::optional<RankVerdict> ask(const std::string& trouble);
  // This rank ends for a reason of its own: the others are told, and stop.
  void report_failure(const std::string& why);
  // Ends the thread. `clean`: all is done; else the others are told that this rank failed.
  void leave(bool clean);

  // Called on the heartbeat's thread when the verdict is there: ends what this rank waits in.
  void on_verdict(std::function<void()> interrupt);
  // Called instead of going on when the rank does not end by itself after a verdict: it is stuck
  // outside of the World's operations. The process then ends with exit code 4.
  void when_stuck(std::function<void(const RankVerdict&)> last_words);
  // Of all ranks as this one knows them: rank 0 at first hand, the others from its answers.
  std::vector<RankSeen> ranks();
  // On rank 0: what is to be told to people about ranks that let the others wait, once each. Not
  // logged by the heartbeat's thread, which never waits for a disk.
  std::vector<std::string> take_warnings();

 private:
  using Time = RankSeen::Time;

  void run();
  void turn(Time now);
  void wait_for_news(std::chrono::milliseconds most);
  void look_at_myself(Time now);
  void look_at_host(RankSeen& mine);
  void judge_leader(Time now);
  void settle(RankVerdict verdict);
  void end_if_stuck(Time now);
  void say_farewell();
  void wake();

  const int rank_, size_;
  const DetectorOptions options_;
  RankProgress progress_;
  FailureDetector judge_;
  std::unique_ptr<LeaderLinks> leader_;
  std::unique_ptr<FollowerLink> follower_;
  int wake_;  // eventfd

  std::mutex mutex_;  // of what follows
  std::condition_variable decided_;
  std::vector<RankSeen> ranks_;
  std::optional<RankVerdict> verdict_;
  std::unique_ptr<HostSampler> sampler_;
  std::function<void(const RankVerdict&)> last_words_;
  std::string new_trouble_, new_failure_;  // to be told to rank 0
  std::vector<std::string> warnings_;      // to be taken
  bool leaving_ = false, clean_ = false;
  Time verdict_time_{}, next_beat_{}, last_turn_{};

  std::atomic<bool> is_decided_{false}, noticed_{false};
  std::mutex interrupting_;  // held while it runs
  std::function<void()> interrupt_;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace lockstep
