// The last round of a launcher with its hosts: asks what they have of the run, and switches them
// off when nothing would be lost, or tells them that they stay on
// (docs/launch.md#switching-the-hosts-off). It is told everything and waits for nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/ending/ending_options.h"
#include "launch/ending/run_copies.h"
#include "launch/job/host_control.h"

namespace lockstep {

// A host that answers at the end of a job.
struct PowerSeat {
  int host = 0;
  std::string name;
  bool stays = false;     // never switched off: the machine that the user sits at
  bool launcher = false;  // the launcher runs there: it goes last
};

// Why nothing may be switched off, for a person; empty: everything may. `hosts` is what each host
// has, by name, `here` what this machine has, where it stays on.
std::string why_not_off(const EndingOptions& options, const std::map<std::string, RunCopies>& hosts,
                        const RunCopies& here);
// Whether waiting may help: a mirror is at work.
bool is_being_mirrored(const std::map<std::string, RunCopies>& hosts);

class PowerRound {
 public:
  // Sends the message to that host.
  using Ask = std::function<void(int host, char kind, const std::string& payload)>;

  // `off`: whether the hosts shall be switched off, or only be told that they stay on.
  PowerRound(const EndingOptions& options, std::vector<PowerSeat> seats, bool off, Ask ask);

  void begin(Clock::time_point now);
  void answered(int host, char kind, std::string_view payload, Clock::time_point now);
  void lost(int host, Clock::time_point now);
  void check_time(Clock::time_point now);
  std::optional<Clock::time_point> next_deadline() const { return deadline_; }
  bool over() const { return phase_ == Phase::kOver; }
  // What was done, for the console; empty when there was nothing to say.
  const std::string& says() const { return says_; }

 private:
  enum class Phase { kAsking, kWaiting, kOrdering, kOver };
  void ask_all(Clock::time_point now);
  void decide(Clock::time_point now);
  void order(bool off, Clock::time_point now);
  void step_on(Clock::time_point now);

  EndingOptions options_;
  std::vector<PowerSeat> seats_;
  bool off_;
  Ask ask_;
  Phase phase_ = Phase::kOver;
  std::vector<int> open_;  // hosts that have not answered yet
  std::map<std::string, RunCopies> copies_;
  Clock::time_point give_up_;
  std::optional<Clock::time_point> deadline_;
  std::string says_;
};

}  // namespace lockstep
