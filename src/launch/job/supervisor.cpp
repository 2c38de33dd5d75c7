#include "launch/job/supervisor.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

// How long to wait, after the end of a rank that only lost a peer, for the rank that caused it
// before the others are told to stop, which would hide the cause.
constexpr milliseconds kSettle{500};
}  // namespace

milliseconds restart_delay(int failures_in_a_row) {
  constexpr int64_t kLongest = 60;
  if (failures_in_a_row <= 1) return milliseconds(0);
  int doublings = std::min(failures_in_a_row - 2, 10);
  return milliseconds(1000 * std::min<int64_t>(int64_t{1} << doublings, kLongest));
}

milliseconds grace_before(double seconds_left) {
  const double margin = std::clamp(seconds_left / 6, 1.0, 10.0);
  return milliseconds(static_cast<int64_t>(std::max(1.0, seconds_left - margin) * 1000));
}

Supervisor::Supervisor(std::vector<SupervisedHost> hosts, const SupervisorOptions& options,
                       SupervisorActions& actions)
    : options_(options),
      hosts_(std::move(hosts), options.min_hosts, options.poll),
      actions_(actions) {}

void Supervisor::begin(Time now) {
  now_ = now;
  hosts_.begin(now);
  gather(now, milliseconds(0));
}

int Supervisor::host_of_rank(int rank) const {
  int first = 0;
  for (int host : attempt_.hosts) {
    first += hosts_[host].is.slots;
    if (rank < first) return host;
  }
  return -1;
}

std::string Supervisor::name_of_rank(int rank) const {
  int host = host_of_rank(rank);
  if (host < 0 || hosts_.name(host).empty()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} on {}", rank, hosts_.name(host));
}

void Supervisor::connect(int host) {
  hosts_.set_connecting(host);
  actions_.connect(host);
}

void Supervisor::gather(Time now, milliseconds delay) {
  phase_ = Phase::kGathering;
  not_before_ = now + delay;
  gather_until_ = not_before_ + options_.host_timeout;
  overtime_ = false;
  hosts_.end_attempt();
  for (int host : hosts_.awaited_away(now)) connect(host);
  try_start(now);
}

std::vector<int> Supervisor::missing() const {
  return phase_ == Phase::kOver ? std::vector<int>() : hosts_.missing();
}

void Supervisor::replace(int index, const std::string& name, Time now) {
  now_ = now;
  const std::vector<int> gone = missing();
  if (std::find(gone.begin(), gone.end(), index) == gone.end()) return;
  if (hosts_[index].state == Host::kConnecting) actions_.release(index);
  actions_.note(replaced_event(index, hosts_.replace(index, name, now), name));
}

void Supervisor::try_start(Time now) {
  if (phase_ != Phase::kGathering || now < not_before_) return;
  if (hosts_.all_awaited() && hosts_.enough()) {
    start(now);
  } else if (overtime_ && hosts_.enough()) {
    go_without_missing(now);
  }
}

void Supervisor::start(Time now) {
  attempt_ = hosts_.take_ready(started_ ? attempt_.number + 1 : 0);
  ends_.clear();
  host_failure_.reset();
  reclaimed_.clear();
  reclaimed_by_ = 0;
  killed_ = false;
  phase_ = Phase::kRunning;
  started_ = true;
  const double waited = failed_at_ ? seconds_of(now - *failed_at_) : -1;
  actions_.note(start_event(attempt_, hosts_.size(), waited));
  actions_.start(attempt_);
}

void Supervisor::host_ready(int index, Time now) {
  now_ = now;
  Host& host = hosts_[index];
  if (host.state != Host::kConnecting) return;
  host.state = Host::kReady;
  if (phase_ == Phase::kGathering && hopeless_) {
    give_up_first_start(true);
  } else if (phase_ == Phase::kGathering) {
    try_start(now);
  } else if (phase_ == Phase::kRunning) {
    actions_.note(back_event(index, hosts_.name(index), attempt_.hosts.size() + 1, hosts_.size()));
    begin_stop(Reason::kRejoin, options_.grace, true);
  }
}

void Supervisor::host_lost(int index, const Error& why, bool final, Time now) {
  now_ = now;
  const bool active = hosts_[index].state == Host::kActive;
  const bool was_there = active || hosts_[index].state == Host::kReady;
  hosts_.set_away(index, why, now);
  if (phase_ == Phase::kOver) return;
  if (was_there) {
    // A configuration error ends the job, and is reported then.
    bool mistake = why.exit_code() == kExitConfig;
    actions_.note({.event = "host_lost", .text = mistake ? "" : why.describe(), .host = index});
  }
  if (active) {
    lose_active(index, now);
    return;
  }
  if (phase_ == Phase::kGathering) give_up_first_start(final);
}

// At the first start a person is there to correct what waiting would not cure; all problems are
// reported at once, when every host has answered.
void Supervisor::give_up_first_start(bool final) {
  hopeless_ |= !started_ && (final || options_.min_hosts == 0);
  if (!started_ && hopeless_ && !hosts_.connecting()) finish_without_hosts();
}

// Handles the loss of a host in the attempt: nobody hears of its ranks any more.
void Supervisor::lose_active(int index, Time now) {
  host_failure_ = hosts_[index].why;
  if (phase_ == Phase::kRunning) {
    fail_attempt();
  }
  finish_if_idle(now);
}

void Supervisor::host_idle(int index, Time now) {
  now_ = now;
  if (hosts_[index].state != Host::kActive) return;
  hosts_[index].state = Host::kReady;
  finish_if_idle(now);
}

void Supervisor::host_told(int index, int signal, Time now) {
  now_ = now;
  if (phase_ != Phase::kRunning || hosts_[index].state != Host::kActive) return;
  reclaimed_.insert(index);
  reclaimed_by_ = signal;
  actions_.note(reclaimed_event(index, hosts_.name(index), signal));
  begin_stop(Reason::kReclaim, options_.grace, false);
}

void Supervisor::host_noticed(int index, const HostNotice& notice, Time now) {
  now_ = now;
  const bool runs = phase_ == Phase::kRunning, stops = phase_ == Phase::kStopping;
  actions_.note(notice_event(index, hosts_.name(index), notice, runs));
  if (notice.withdrawn) {
    reclaimed_.erase(index);
    return;
  }
  const std::vector<int>& hosts = attempt_.hosts;
  if ((!runs && !stops) || std::find(hosts.begin(), hosts.end(), index) == hosts.end()) return;
  reclaimed_.insert(index);
  reclaimed_by_ = SIGTERM;
  const milliseconds grace = grace_before(notice.seconds_left);
  if (runs) {
    begin_stop(Reason::kReclaim, grace, true);
  } else {
    actions_.stop(grace, false);  // the earlier of two times counts
  }
}

void Supervisor::rank_ended(const RankEnd& end) {
  now_ = end.time;
  ends_.push_back(end);
  if (end.status == 0 || phase_ != Phase::kRunning) return;
  if (may_be_consequence(end)) {
    if (!settle_until_) settle_until_ = end.time + kSettle;
  } else {
    fail_attempt();
  }
}

void Supervisor::progressed() {
  failures_ = 0;
  hosts_.progressed();
}

void Supervisor::note_failure(const std::optional<RankEnd>& failure) {
  if (!failure || host_failure_) return;
  const bool others_run = ends_.size() < static_cast<std::size_t>(attempt_.ranks);
  LaunchEvent event = failure_event(*failure, name_of_rank(failure->rank), others_run);
  event.host = host_of_rank(failure->rank);
  actions_.note(event);
}

void Supervisor::fail_attempt() {
  std::optional<RankEnd> failure = first_failure(ends_);
  note_failure(failure);
  bool quick = may_restart(failure);
  begin_stop(Reason::kFailure,
             quick ? std::min(options_.grace, options_.short_grace) : options_.grace, true);
}

void Supervisor::begin_stop(Reason reason, milliseconds grace, bool tell) {
  settle_until_.reset();
  phase_ = Phase::kStopping;
  reason_ = reason;
  failed_at_ = now_;
  actions_.stop(grace, tell);
}

void Supervisor::interrupted(int signal, Time now) {
  now_ = now;
  if (phase_ == Phase::kOver) return;
  if (interrupted_by_ != 0 && signal == SIGINT && phase_ == Phase::kStopping) {
    if (!killed_) actions_.kill();
    killed_ = true;
    return;
  }
  std::optional<RankEnd> failure = first_failure(ends_);
  bool failed = (failure || host_failure_) && !may_restart(failure);
  if (interrupted_by_ == 0 && !failed) interrupted_by_ = signal;
  if (phase_ == Phase::kGathering) {
    actions_.note({.event = "signal", .text = signal_name(signal) + ": ending"});
    finish({.exit_code = 128 + signal, .interrupted_by = signal});
    return;
  }
  if (phase_ == Phase::kStopping && reason_ != Reason::kFailure) {
    reason_ = Reason::kSignal;
    return;
  }
  if (phase_ == Phase::kStopping) return;
  actions_.note(stop_event(signal, attempt_.ranks, options_.grace));
  begin_stop(Reason::kSignal, options_.grace, true);
}

void Supervisor::run_out(milliseconds grace, Time now) {
  now_ = now;
  if (phase_ == Phase::kOver || run_out_) return;
  run_out_ = true;
  if (phase_ == Phase::kGathering) {
    finish({.exit_code = kExitBudget, .run_out = true});
  } else if (phase_ == Phase::kRunning) {
    begin_stop(Reason::kBudget, grace, true);
  }
}

void Supervisor::check_time(Time now) {
  now_ = now;
  if (phase_ == Phase::kOver) return;
  if (settle_until_ && now >= *settle_until_) fail_attempt();
  const bool gathering = phase_ == Phase::kGathering;
  for (int host : hosts_.due(gathering && !hopeless_, now)) connect(host);
  if (!gathering) return;
  try_start(now);
  if (phase_ == Phase::kGathering && now >= gather_until_) go_without_missing(now);
}

std::optional<Supervisor::Time> Supervisor::next_deadline() const {
  if (phase_ == Phase::kOver) return std::nullopt;
  std::optional<Time> next = settle_until_;
  bool gathering = phase_ == Phase::kGathering;
  if (gathering) next = earlier(next, gather_until_);
  if (gathering && now_ < not_before_) next = earlier(next, not_before_);
  return earlier(next, hosts_.next_try(gathering));
}

void Supervisor::go_without_missing(Time now) {
  if (!hosts_.enough()) {
    const bool waits = started_ && !overtime_ && options_.replacement_wait.count() > 0;
    if (!waits) return finish_without_hosts();
    overtime_ = true;
    gather_until_ = now + options_.replacement_wait;
    actions_.note({.event = "waiting",
                   .text = fmt::format("too few hosts are there: waiting up to {} for others",
                                       short_duration(seconds_of(options_.replacement_wait)))});
    return;
  }
  for (int host : hosts_.stop_waiting(now)) {
    actions_.note(away_event(host, hosts_.name(host)));
  }
  start(now);
}

void Supervisor::finish_without_hosts() {
  const Error error = hosts_.absence(started_, options_.host_timeout);
  finish({.exit_code = error.exit_code(), .loss = error});
}

void Supervisor::finish_if_idle(Time now) {
  if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
  if (hosts_.any_active(attempt_.hosts)) return;
  settle_until_.reset();
  // All ended before it was clear which one failed first.
  if (phase_ == Phase::kRunning) note_failure(first_failure(ends_));
  decide(now);
}

// Call this when every rank has ended.
void Supervisor::decide(Time now) {
  std::optional<RankEnd> failure = first_failure(ends_);
  if (interrupted_by_ != 0) {
    finish({.exit_code = 128 + interrupted_by_, .interrupted_by = interrupted_by_});
    return;
  }
  bool all_done =
      static_cast<int>(ends_.size()) == attempt_.ranks &&
      std::all_of(ends_.begin(), ends_.end(), [](const RankEnd& e) { return e.status == 0; });
  if (all_done) {
    finish({});
    return;
  }
  if (run_out_) {
    finish({.exit_code = kExitBudget, .run_out = true});
    return;
  }
  const bool reclaimed = !reclaimed_.empty();
  const bool ends = options_.replacement_wait.count() == 0;
  if (reclaimed && !release_reclaimed(now) && ends && !failure && !host_failure_) {
    finish({.exit_code = 128 + reclaimed_by_, .interrupted_by = reclaimed_by_});
    return;
  }
  if (failure || host_failure_) {
    decide_after_failure(failure, now);
  } else {
    gather(now, milliseconds(0));
  }
}

// Leaves machines alone that were asked to stop. Returns whether enough others are there.
bool Supervisor::release_reclaimed(Time now) {
  for (int index : reclaimed_) {
    if (hosts_[index].state != Host::kAway) actions_.release(index);
    hosts_.leave_alone(index, now + options_.reclaim);
  }
  const bool enough = hosts_.enough();
  for (int index : reclaimed_) hosts_[index].awaited = !enough;
  return enough;
}

bool Supervisor::may_restart(const std::optional<RankEnd>& failure) const {
  if (failures_ >= options_.restarts) return false;
  int code = kExitMachine;
  if (failure) code = exit_code_for(*failure);
  if (host_failure_) code = host_failure_->exit_code();
  // Errors of configuration, data or training would occur again.
  return code == kExitMachine || code == kExitInternal;
}

void Supervisor::decide_after_failure(const std::optional<RankEnd>& failure, Time now) {
  if (!may_restart(failure)) {
    JobVerdict verdict{.exit_code = kExitMachine, .failure = failure};
    if (failure) verdict.exit_code = exit_code_for(*failure);
    if (host_failure_) {
      verdict = {.exit_code = host_failure_->exit_code(), .loss = host_failure_};
    }
    finish(verdict);
    return;
  }
  ++failures_;
  milliseconds delay = restart_delay(failures_);
  actions_.note(restart_event(attempt_.number + 1, delay, failures_, options_.restarts));
  gather(now, delay);
}

void Supervisor::finish(JobVerdict verdict) {
  phase_ = Phase::kOver;
  verdict_ = std::move(verdict);
}

}  // namespace lockstep
