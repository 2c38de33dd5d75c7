#include "launch/job/host_roster.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace lockstep {

namespace {

// The pause between two tries to reach a host that an attempt waits for.
constexpr std::chrono::milliseconds kRetry{1000};

}  // namespace

HostRoster::HostRoster(std::vector<SupervisedHost> hosts, int needed, milliseconds poll)
    : needed_(needed > 0 ? needed : static_cast<int>(hosts.size())), poll_(poll) {
  for (SupervisedHost& host : hosts) {
    const bool awaited = !host.away;
    entries_.push_back({.is = std::move(host), .awaited = awaited});
  }
}

void HostRoster::begin(Time now) {
  for (Entry& host : entries_) {
    if (!host.awaited) host.retry_at = now + poll_;
  }
}

void HostRoster::set_connecting(int host) {
  entries_[host].state = Entry::kConnecting;
  entries_[host].retry_at.reset();
  entries_[host].left_until.reset();
}

void HostRoster::set_away(int host, const Error& why, Time now) {
  entries_[host].state = Entry::kAway;
  entries_[host].why = why;
  retry_later(entries_[host], now);
}

// A host that nobody waits for is tried less and less often; so is one that comes and goes.
void HostRoster::retry_later(Entry& host, Time now) {
  ++host.losses;
  milliseconds pause = kRetry;
  if (!host.awaited) pause = std::min(poll_ * (1 << std::min(host.losses - 1, 10)), poll_ * 6);
  host.retry_at = now + pause;
}

void HostRoster::leave_alone(int host, Time until) {
  entries_[host].state = Entry::kAway;
  entries_[host].retry_at = entries_[host].left_until = until;
}

std::string HostRoster::replace(int host, const std::string& name, Time now) {
  Entry& entry = entries_[host];
  entry.state = Entry::kAway;
  entry.losses = 0;
  entry.why.reset();
  entry.left_until.reset();
  entry.retry_at = now;
  return std::exchange(entry.is.name, name);
}

void HostRoster::progressed() {
  for (Entry& host : entries_) {
    if (host.state == Entry::kActive) host.losses = 0;
  }
}

void HostRoster::end_attempt() {
  for (Entry& host : entries_) {
    if (host.state == Entry::kActive) host.state = Entry::kReady;
  }
}

std::vector<int> HostRoster::stop_waiting(Time now) {
  std::vector<int> out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& host = entries_[i];
    if (host.state == Entry::kReady || !host.awaited) continue;
    host.awaited = false;
    host.losses = 0;
    if (host.state == Entry::kAway) retry_later(host, now);
    out.push_back(static_cast<int>(i));
  }
  return out;
}

Attempt HostRoster::take_ready(int number) {
  Attempt out{.number = number, .hosts = {}};
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& host = entries_[i];
    if (host.state != Entry::kReady) continue;
    host.state = Entry::kActive;
    host.awaited = true;
    out.hosts.push_back(static_cast<int>(i));
    out.ranks += host.is.slots;
  }
  return out;
}

int HostRoster::ready() const {
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [](const Entry& host) {
    return host.state == Entry::kReady;
  }));
}

bool HostRoster::enough() const { return ready() >= std::max(1, needed_); }

bool HostRoster::all_awaited() const {
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& host) {
    return host.state == Entry::kReady || !host.awaited;
  });
}

bool HostRoster::connecting() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& host) { return host.state == Entry::kConnecting; });
}

bool HostRoster::any_active(const std::vector<int>& hosts) const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](int host) { return entries_[host].state == Entry::kActive; });
}

std::vector<int> HostRoster::missing() const {
  std::vector<int> out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& host = entries_[i];
    const bool gone =
        host.state == Entry::kAway || (host.state == Entry::kConnecting && host.losses > 0);
    if (gone) out.push_back(static_cast<int>(i));
  }
  return out;
}

std::vector<int> HostRoster::awaited_away(Time now) const {
  std::vector<int> out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& host = entries_[i];
    const bool left_alone = host.left_until && now < *host.left_until;
    if (host.state == Entry::kAway && host.awaited && !left_alone) {
      out.push_back(static_cast<int>(i));
    }
  }
  return out;
}

std::vector<int> HostRoster::due(bool gathering, Time now) const {
  std::vector<int> out;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& host = entries_[i];
    const bool wanted = gathering || !host.awaited;
    if (host.state == Entry::kAway && wanted && host.retry_at && now >= *host.retry_at) {
      out.push_back(static_cast<int>(i));
    }
  }
  return out;
}

std::optional<HostRoster::Time> HostRoster::next_try(bool gathering) const {
  std::optional<Time> next;
  for (const Entry& host : entries_) {
    const bool wanted = gathering || !host.awaited;
    if (host.state == Entry::kAway && wanted) next = earlier(next, host.retry_at);
  }
  return next;
}

Error HostRoster::absence(bool started, milliseconds timeout) const {
  std::vector<std::string> missing;
  std::optional<Error> first;
  for (const Entry& host : entries_) {
    if (host.state == Entry::kReady) continue;
    missing.push_back(host.is.name);
    if (!first && host.why) first = host.why;
  }
  const std::string silence =
      fmt::format("no answer within {}", short_duration(seconds_of(timeout)));
  const bool alone = missing.size() == 1 && !started;
  const Error error = first.value_or(
      MachineError("{}", alone ? fmt::format("host {}: {}", missing.front(), silence) : silence));
  if (missing.size() <= 1 && !started) return error;
  Error summary(error.exit_code(), fmt::format("{} of {} not there: {}", missing.size(),
                                               counted(size(), "host"), join(missing, ", ")));
  if (missing.size() == 1 || !first) summary.set_cause(error.describe());
  for (const Entry& host : entries_) {
    if (missing.size() > 1 && host.state != Entry::kReady && host.why) {
      summary.add_context(host.why->describe());
    }
  }
  if (started) summary.set_advice("--min-hosts N goes on with fewer");
  return summary;
}

}  // namespace lockstep
