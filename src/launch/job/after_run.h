// What a launcher does once its ranks have ended: the command of --then, the last round with the
// hosts, the last notices (docs/launch.md#the-end-of-a-run). Meanwhile its loop goes on, since
// hosts must hear from it as long as they are there.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/job/job_ending.h"
#include "launch/job/launcher.h"
#include "launch/job/power_round.h"

namespace lockstep {

class AfterRun {
 public:
  struct Means {
    // One turn of the launcher's loop, at most until then.
    std::function<void(std::optional<Clock::time_point> until)> turn;
    std::function<void(const LaunchEvent& event)> note;
    PowerRound::Ask ask;
  };
  // Both outlive this.
  AfterRun(JobEnding& ending, Means means) : ending_(ending), means_(std::move(means)) {}

  // Runs the command where the run ended well; where the command did not, says so in `out`.
  void run_then(LaunchOutcome& out, const std::vector<std::string>& hosts);
  void end_power(std::vector<PowerSeat> seats, bool off);
  void tell_last();

  // What the loop brings meanwhile.
  void collect();  // after SIGCHLD
  void interrupted() { impatient_ = true; }
  void answered(int host, char kind, std::string_view payload);
  void lost(int host);
  void check_time(Clock::time_point now);
  std::optional<Clock::time_point> next_deadline() const;

 private:
  JobEnding& ending_;
  Means means_;
  pid_t then_ = -1;
  int then_status_ = 0;
  bool impatient_ = false;  // a signal came after the run
  std::optional<PowerRound> power_;
};

}  // namespace lockstep
