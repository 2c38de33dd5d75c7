#include "launch/job/after_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "launch/processes/child_process.h"

namespace lockstep {

void AfterRun::run_then(LaunchOutcome& out, const std::vector<std::string>& hosts) {
  const EndingOptions& ending = ending_.options();
  if (ending.then.empty() || out.exit_code != kExitOk) return;
  ::setenv("LOCKSTEP_RUN", (ending.run_here.empty() ? ending.run : ending.run_here).c_str(), 1);
  ::setenv("LOCKSTEP_HOSTS", join(hosts, ",").c_str(), 1);
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  then_ = start_process({"/bin/sh", "-c", ending.then}, nothing.get(), 1, 2);
  const pid_t process = then_;
  while (then_ > 0) {
    means_.turn(std::nullopt);
    if (impatient_ && then_ > 0) ::kill(-process, SIGTERM);
  }
  const std::string how = WIFEXITED(then_status_)
                              ? fmt::format("exit code {}", WEXITSTATUS(then_status_))
                              : "it was ended by " + signal_name(WTERMSIG(then_status_));
  means_.note({.event = "then", .text = "--then: " + how});
  if (then_status_ == 0) return;
  out.exit_code = kExitThen;
  out.message = "the run ended well, the command of --then did not: " + how;
}

void AfterRun::end_power(std::vector<PowerSeat> seats, bool off) {
  power_.emplace(ending_.options(), std::move(seats), off && !impatient_, means_.ask);
  power_->begin(Clock::now());
  while (!power_->over() && !impatient_) means_.turn(std::nullopt);
  if (!power_->says().empty()) means_.note({.event = "power_off", .text = power_->says()});
}

// The end is worth waiting for, but not for long.
void AfterRun::tell_last() {
  constexpr std::chrono::seconds kPatience{45};
  const Clock::time_point until = Clock::now() + kPatience;
  ending_.notifier().hurry();
  while (!ending_.notifier().idle() && !impatient_ && Clock::now() < until) means_.turn(until);
}

void AfterRun::collect() {
  if (then_ > 0 && ::waitpid(then_, &then_status_, WNOHANG) == then_) then_ = -1;
}

void AfterRun::answered(int host, char kind, std::string_view payload) {
  if (power_) power_->answered(host, kind, payload, Clock::now());
}

void AfterRun::lost(int host) {
  if (power_) power_->lost(host, Clock::now());
}

void AfterRun::check_time(Clock::time_point now) {
  if (power_) power_->check_time(now);
}

std::optional<Clock::time_point> AfterRun::next_deadline() const {
  return power_ ? power_->next_deadline() : std::nullopt;
}

}  // namespace lockstep
