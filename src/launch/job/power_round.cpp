#include "launch/job/power_round.h"

#include <algorithm>

#include "base/text.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kForAnAnswer{10};
constexpr seconds kForTheMirror{120};
constexpr milliseconds kLookAgain{1000};
// The launcher of a detached job still tells all hosts that it is over, and says so itself.
constexpr milliseconds kDelay{1000}, kDelayOfJob{30000}, kDelayOfItsLauncher{60000};

int64_t newest_step(const std::map<std::string, RunCopies>& hosts) {
  int64_t out = -1;
  for (const auto& [name, has] : hosts) out = std::max(out, step_of_checkpoint(has.newest));
  return out;
}

}  // namespace

std::string why_not_off(const EndingOptions& options, const std::map<std::string, RunCopies>& hosts,
                        const RunCopies& here) {
  const int64_t newest = newest_step(hosts);
  if (options.power.anyway || newest < 0) return "";
  std::vector<std::string> holders;
  std::string error;
  bool copied = false;
  for (const auto& [name, has] : hosts) {
    copied |= has.has_mirror && step_of_checkpoint(has.mirrored) >= newest;
    if (!has.error.empty()) error = has.error;
    if (step_of_checkpoint(has.newest) < newest) continue;
    holders.push_back(name);
    copied |= !here.digest.empty() && here.newest == has.newest && here.digest == has.digest;
  }
  if (copied) return "";
  return fmt::format("step_{} is on {} alone{}", newest, join(holders, ", "),
                     error.empty() ? "" : "; the mirror failed: " + error);
}

bool is_being_mirrored(const std::map<std::string, RunCopies>& hosts) {
  return std::any_of(hosts.begin(), hosts.end(), [](const auto& host) {
    const RunCopies& has = host.second;
    return has.has_mirror && !has.complete && has.error.empty();
  });
}

PowerRound::PowerRound(const EndingOptions& options, std::vector<PowerSeat> seats, bool off,
                       Ask ask)
    : options_(options), seats_(std::move(seats)), off_(off), ask_(std::move(ask)) {}

void PowerRound::begin(Clock::time_point now) {
  if (seats_.empty()) return;
  give_up_ = now + kForTheMirror;
  if (!off_) {
    order(false, now);
  } else if (options_.run.empty()) {
    decide(now);
  } else {
    ask_all(now);
  }
}

void PowerRound::ask_all(Clock::time_point now) {
  phase_ = Phase::kAsking;
  deadline_ = now + kForAnAnswer;
  open_.clear();
  for (const PowerSeat& seat : seats_) open_.push_back(seat.host);
  const std::vector<PowerSeat> asked = seats_;  // asking may show that one is lost
  for (const PowerSeat& seat : asked) ask_(seat.host, kAskCopies, options_.run);
}

void PowerRound::answered(int host, char kind, std::string_view payload, Clock::time_point now) {
  const auto open = std::find(open_.begin(), open_.end(), host);
  if (open == open_.end()) return;
  if (phase_ == Phase::kAsking && kind == kCopies) {
    for (const PowerSeat& seat : seats_) {
      if (seat.host == host) copies_[seat.name] = run_copies_of(std::string(payload));
    }
  } else if (phase_ != Phase::kOrdering || kind != kDone) {
    return;
  }
  open_.erase(open);
  step_on(now);
}

void PowerRound::lost(int host, Clock::time_point now) {
  seats_.erase(std::remove_if(seats_.begin(), seats_.end(),
                              [&](const PowerSeat& seat) { return seat.host == host; }),
               seats_.end());
  open_.erase(std::remove(open_.begin(), open_.end(), host), open_.end());
  step_on(now);
}

void PowerRound::step_on(Clock::time_point now) {
  if (!open_.empty()) return;
  if (phase_ == Phase::kAsking) decide(now);
  if (phase_ == Phase::kOrdering && open_.empty()) {
    phase_ = Phase::kOver;
    deadline_.reset();
  }
}

void PowerRound::check_time(Clock::time_point now) {
  if (!deadline_ || now < *deadline_) return;
  if (phase_ == Phase::kWaiting) {
    ask_all(now);
  } else if (phase_ == Phase::kAsking) {
    decide(now);
  } else {
    phase_ = Phase::kOver;
    deadline_.reset();
  }
}

void PowerRound::decide(Clock::time_point now) {
  const RunCopies here = options_.detached || options_.run_here.empty()
                             ? RunCopies()
                             : look_at_copies(options_.run_here);
  const std::string problem = why_not_off(options_, copies_, here);
  if (!problem.empty() && is_being_mirrored(copies_) && now < give_up_) {
    phase_ = Phase::kWaiting;
    deadline_ = now + kLookAgain;
    return;
  }
  if (!problem.empty()) {
    says_ = fmt::format("the hosts are not switched off: {}", problem);
    order(false, now);
    return;
  }
  order(true, now);
}

void PowerRound::order(bool off, Clock::time_point now) {
  phase_ = Phase::kOrdering;
  deadline_ = now + kForAnAnswer;
  open_.clear();
  for (const PowerSeat& seat : seats_) open_.push_back(seat.host);
  std::vector<std::string> names;
  const std::vector<PowerSeat> asked = seats_;  // an order may show that a host is lost
  for (const PowerSeat& seat : asked) {
    if (!off || seat.stays) {
      ask_(seat.host, kStandDown, "");
      continue;
    }
    names.push_back(seat.name);
    const milliseconds delay = !options_.detached ? kDelay
                               : seat.launcher    ? kDelayOfItsLauncher
                                                  : kDelayOfJob;
    ask_(seat.host, kPowerOff, encode_number(delay.count()));
  }
  if (!names.empty()) says_ = fmt::format("switched off: {}", join(names, ", "));
}

}  // namespace lockstep
