#include "launch/job/supervisor.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

// How long to wait, after the end of a rank that only lost a peer, for the rank that caused it
// before the others are told to stop, which would hide the cause.
constexpr milliseconds kSettle{500};
// The pause between two tries to reach a host that an attempt waits for.

constexpr milliseconds kRetry{1000};

double seconds_of(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

std::string plural(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

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
    : options_(options), actions_(actions) {
  for (SupervisedHost& host : hosts) {
    const bool awaited = !host.away;
    hosts_.push_back({.is = std::move(host), .awaited = awaited});
  }
}

void Supervisor::begin(Time now) {
  now_ = now;
  for (Host& host : hosts_) {
    if (!host.awaited) host.retry_at = now + options_.poll;
  }
  gather(now, milliseconds(0));
}

int Supervisor::needed_hosts() const {
  return options_.min_hosts > 0 ? options_.min_hosts : static_cast<int>(hosts_.size());
}

int Supervisor::count_ready() const {
  return static_cast<int>(std::count_if(hosts_.begin(), hosts_.end(),
                                        [](const Host& h) { return h.state == Host::kReady; }));
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
  if (host < 0 || hosts_[host].is.name.empty()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} on {}", rank, hosts_[host].is.name);
}

void Supervisor::connect(int host) {
  hosts_[host].state = Host::kConnecting;
  hosts_[host].retry_at.reset();
  hosts_[host].left_until.reset();
  actions_.connect(host);
}

// A host that nobody waits for is tried less and less often; so is one that comes and goes.
void Supervisor::retry_later(Host& host, Time now) {
  ++host.losses;
  milliseconds pause = kRetry;
  if (!host.awaited) {
    pause = std::min(options_.poll * (1 << std::min(host.losses - 1, 10)), options_.poll * 6);
  }
  host.retry_at = now + pause;
}

void Supervisor::gather(Time now, milliseconds delay) {
  phase_ = Phase::kGathering;
  not_before_ = now + delay;
  gather_until_ = not_before_ + options_.host_timeout;
  overtime_ = false;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].state == Host::kActive) hosts_[i].state = Host::kReady;
    const bool left_alone = hosts_[i].left_until && now < *hosts_[i].left_until;
    if (hosts_[i].state == Host::kAway && hosts_[i].awaited && !left_alone) {
      connect(static_cast<int>(i));
    }
  }
  try_start(now);
}

std::vector<int> Supervisor::missing() const {
  std::vector<int> out;
  if (phase_ == Phase::kOver) return out;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const bool gone = hosts_[i].state == Host::kAway ||
                      (hosts_[i].state == Host::kConnecting && hosts_[i].losses > 0);
    if (gone) out.push_back(static_cast<int>(i));
  }
  return out;
}

void Supervisor::replace(int index, const std::string& name, Time now) {
  now_ = now;
  Host& host = hosts_[index];
  const std::vector<int> gone = missing();
  if (std::find(gone.begin(), gone.end(), index) == gone.end()) return;
  if (host.state == Host::kConnecting) actions_.release(index);
  host.state = Host::kAway;
  const std::string old = std::exchange(host.is.name, name);
  host.losses = 0;
  host.why.reset();
  host.left_until.reset();
  host.retry_at = now;
  actions_.note({.event = "host_replaced",
                 .text = old == name ? fmt::format("host {} is another machine now", name)
                                     : fmt::format("host {} takes the place of {}", name, old),
                 .host = index});
}

void Supervisor::try_start(Time now) {
  if (phase_ != Phase::kGathering || now < not_before_) return;
  bool all = std::all_of(hosts_.begin(), hosts_.end(),
                         [](const Host& h) { return h.state == Host::kReady || !h.awaited; });
  const bool enough = count_ready() >= std::max(1, needed_hosts());
  if (all && enough) {
    start(now);
  } else if (overtime_ && enough) {
    go_without_missing(now);
  }
}

void Supervisor::start(Time now) {
  attempt_.number = started_ ? attempt_.number + 1 : 0;
  attempt_.hosts.clear();
  attempt_.ranks = 0;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = hosts_[i];
    if (host.state != Host::kReady) continue;
    host.state = Host::kActive;
    host.awaited = true;
    attempt_.hosts.push_back(static_cast<int>(i));
    attempt_.ranks += host.is.slots;
  }
  ends_.clear();
  host_failure_.reset();
  reclaimed_.clear();
  reclaimed_by_ = 0;
  killed_ = false;
  phase_ = Phase::kRunning;
  bool first = !started_;
  started_ = true;
  double waited = failed_at_ ? seconds_of(now - *failed_at_) : -1;
  std::string text;
  if (!first) text = fmt::format("attempt {}: {}", attempt_.number, describe_hosts());
  actions_.note({.event = "start", .text = text, .seconds = waited});
  actions_.start(attempt_);
}

std::string Supervisor::describe_hosts() const {
  std::string out = plural(static_cast<std::size_t>(attempt_.ranks), "rank");
  if (hosts_.size() == 1) return out;
  return fmt::format("{} on {} of {}", out, attempt_.hosts.size(), plural(hosts_.size(), "host"));
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
    actions_.note({.event = "host_back",
                   .text = fmt::format(
                       "host {} is back: stopping after a checkpoint, to go on with "
                       "{} of {}",
                       host.is.name, attempt_.hosts.size() + 1, plural(hosts_.size(), "host")),
                   .host = index});
    begin_stop(Reason::kRejoin, options_.grace, true);
  }
}

void Supervisor::host_lost(int index, const Error& why, bool final, Time now) {
  now_ = now;
  Host& host = hosts_[index];
  bool active = host.state == Host::kActive;
  bool was_there = active || host.state == Host::kReady;
  host.state = Host::kAway;
  host.why = why;
  retry_later(host, now);
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
  bool pending = std::any_of(hosts_.begin(), hosts_.end(),
                             [](const Host& h) { return h.state == Host::kConnecting; });
  if (!started_ && hopeless_ && !pending) finish_without_hosts();
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
  std::string who = hosts_[index].is.name.empty() ? "a rank" : "host " + hosts_[index].is.name;
  actions_.note(
      {.event = "reclaimed",
       .text = fmt::format("{} got {}: all ranks save a checkpoint", who, signal_name(signal)),
       .host = index});
  begin_stop(Reason::kReclaim, options_.grace, false);
}

void Supervisor::host_noticed(int index, const HostNotice& notice, Time now) {
  now_ = now;
  const std::string& name = hosts_[index].is.name;
  const std::string who = name.empty() ? "this machine" : "host " + name;
  if (notice.withdrawn) {
    reclaimed_.erase(index);
    actions_.note({.event = "notice_withdrawn",
                   .text = fmt::format("{} stays: {} withdrew its notice ({})", who, notice.cloud,
                                       notice.action),
                   .host = index,
                   .notice = notice});
    return;
  }
  const bool runs = phase_ == Phase::kRunning, stops = phase_ == Phase::kStopping;
  actions_.note({.event = "notice",
                 .text = fmt::format("{} is taken away by {} in {} ({}){}", who, notice.cloud,
                                     short_duration(notice.seconds_left), notice.action,
                                     runs ? ": all ranks save a checkpoint" : ""),
                 .host = index,
                 .seconds = notice.seconds_left,
                 .notice = notice});
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
  for (Host& host : hosts_) {
    if (host.state == Host::kActive) host.losses = 0;
  }
}

void Supervisor::note_failure(const std::optional<RankEnd>& failure) {
  if (!failure || host_failure_) return;
  bool others_run = ends_.size() < static_cast<std::size_t>(attempt_.ranks);
  actions_.note({.event = "failure",
                 .text = fmt::format("{} {}{}", name_of_rank(failure->rank), describe_end(*failure),
                                     others_run ? "; stopping the others" : ""),
                 .host = host_of_rank(failure->rank),
                 .rank = failure->rank,
                 .exit_code = exit_code_for(*failure)});
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
  actions_.note(
      {.event = "signal",
       .text = fmt::format("{}: stopping {} ({} to finish; Ctrl-C again kills)",
                           signal_name(signal), attempt_.ranks == 1 ? "the rank" : "all ranks",
                           short_duration(seconds_of(options_.grace)))});
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
  bool gathering = phase_ == Phase::kGathering;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = hosts_[i];
    bool wanted = (gathering && !hopeless_) || !host.awaited;
    if (host.state == Host::kAway && wanted && host.retry_at && now >= *host.retry_at) {
      connect(static_cast<int>(i));
    }
  }
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
  for (const Host& host : hosts_) {
    bool wanted = gathering || !host.awaited;
    if (host.state == Host::kAway && wanted) next = earlier(next, host.retry_at);
  }
  return next;
}

void Supervisor::go_without_missing(Time now) {
  if (count_ready() == 0 || count_ready() < needed_hosts()) {
    const bool waits = started_ && !overtime_ && options_.replacement_wait.count() > 0;
    if (!waits) return finish_without_hosts();
    overtime_ = true;
    gather_until_ = now + options_.replacement_wait;
    actions_.note({.event = "waiting",
                   .text = fmt::format("too few hosts are there: waiting up to {} for others",
                                       short_duration(seconds_of(options_.replacement_wait)))});
    return;
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = hosts_[i];
    if (host.state == Host::kReady || !host.awaited) continue;
    host.awaited = false;
    host.losses = 0;
    if (host.state == Host::kAway) retry_later(host, now);
    actions_.note({.event = "host_away",
                   .text = fmt::format("host {} stays away: going on without it", host.is.name),
                   .host = static_cast<int>(i)});
  }
  start(now);
}

void Supervisor::finish_without_hosts() {
  std::vector<std::string> missing;
  std::optional<Error> first;
  for (const Host& host : hosts_) {
    if (host.state == Host::kReady) continue;
    missing.push_back(host.is.name);
    if (!first && host.why) first = host.why;
  }
  Error error = first.value_or(
      MachineError("no answer within {}", short_duration(seconds_of(options_.host_timeout))));
  if (missing.size() > 1 || started_) {
    Error summary(error.exit_code(),
                  fmt::format("{} of {} not there: {}", missing.size(),
                              plural(hosts_.size(), "host"), join(missing, ", ")));
    if (missing.size() == 1) summary.set_cause(error.describe());
    for (const Host& host : hosts_) {
      if (missing.size() > 1 && host.state != Host::kReady && host.why) {
        summary.add_context(host.why->describe());
      }
    }
    if (started_) summary.set_advice("--min-hosts N goes on with fewer");
    error = summary;
  }
  finish({.exit_code = error.exit_code(), .loss = error});
}

void Supervisor::finish_if_idle(Time now) {
  if (phase_ != Phase::kRunning && phase_ != Phase::kStopping) return;
  for (int host : attempt_.hosts) {
    if (hosts_[host].state == Host::kActive) return;
  }
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
    Host& host = hosts_[index];
    if (host.state != Host::kAway) actions_.release(index);
    host.state = Host::kAway;
    host.retry_at = host.left_until = now + options_.reclaim;
  }
  const bool enough = count_ready() >= std::max(1, needed_hosts());
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
  std::string when = delay.count() == 0 ? "now" : fmt::format("in {:g} s", seconds_of(delay));
  actions_.note({.event = "restart",
                 .text = fmt::format("attempt {} starts {} (restart {} of {} without progress)",
                                     attempt_.number + 1, when, failures_, options_.restarts),
                 .seconds = seconds_of(delay)});
  gather(now, delay);
}

void Supervisor::finish(JobVerdict verdict) {
  phase_ = Phase::kOver;
  verdict_ = std::move(verdict);
}

}  // namespace lockstep
