#include "dist/liveness/failure_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace lockstep {
namespace {

using Time = RankSeen::Time;

// Seconds to wait after a rank ended: ranks of one machine end together, and the others are known a
// moment later.
constexpr double kGather = 0.05;
// A rank that fails is named after this many seconds, unless it failed because another one is lost.
constexpr double kOwnFailure = 0.3;
// How long an operation that failed somewhere may wait for a better explanation.
constexpr double kExplanation = 0.8;
// Ranks that have not finished an operation yet have this long to say what they issued.
constexpr double kComparison = 0.6;
// A wait is unusual when it is this many times as long as the longest so far in the same phase.
constexpr double kUnusual = 3;
// Phases that may take long are warned of after this many times stall_seconds.
constexpr double kPatience = 8;

double seconds_between(Time from, Time to) {
  return std::chrono::duration<double>(to - from).count();
}

std::string table_line(const RankSeen& r, Time now) {
  const ProgressView& p = r.status.progress;
  std::string doing = name_of(p.phase);
  if (p.waiting != 0) doing += fmt::format(", in operation {}", p.waiting);
  std::string last = r.operations.empty() ? "" : r.operations.back().text();
  if (last.empty() && p.started > 0) last = fmt::format("operation {}", p.started);
  std::string seen = "never";
  if (r.presence != Presence::kAbsent) {
    seen = fmt::format("{:.1f} s ago{}", seconds_between(r.seen, now),
                       r.presence == Presence::kClosed ? ", ended"
                       : r.presence == Presence::kDone ? ", was done"
                                                       : "");
  }
  return fmt::format("    {:>4}  {:<16} {:>9}  {:<26} {:<18} {}\n", r.identity.rank,
                     r.identity.host, with_commas(p.step), doing, seen, last);
}

// Returns "rank 2 on node1 (10.0.0.2)", "ranks 2 and 3 on node1 (10.0.0.2)", else a list of names.
std::string names_of(const std::vector<RankSeen>& ranks, const std::vector<int>& which) {
  const RankIdentity& first = ranks[which.front()].identity;
  bool one_host = std::all_of(which.begin(), which.end(), [&](int r) {
    return std::string_view(ranks[r].identity.host) == first.host &&
           std::string_view(ranks[r].identity.address) == first.address;
  });
  if (which.size() == 1) return ranks[which.front()].name();
  constexpr std::size_t kFew = 4;
  std::vector<std::string> names;
  for (int r : which) {
    if (!one_host && which.size() > kFew && names.size() == kFew - 1) {
      names.push_back(fmt::format("{} others", which.size() - names.size()));
      break;
    }
    names.push_back(one_host ? std::to_string(r) : ranks[r].name());
  }
  std::string last = names.back();
  names.pop_back();
  std::string text = fmt::format("{} and {}", join(names, ", "), last);
  if (!one_host) return text;
  std::string name = ranks[which.front()].name();
  return fmt::format("ranks {}{}", text, name.substr(std::min(name.find(" on "), name.size())));
}

RankVerdict verdict_on(const std::vector<RankSeen>& ranks, std::vector<int> which, Time now) {
  RankVerdict out;
  std::string places;
  for (int r : which) {
    if (!places.empty()) places += "; ";
    if (which.size() > 1) places += fmt::format("rank {} ", r);
    places += "last seen in " + ranks[r].place();
  }
  out.ranks = std::move(which);
  out.detail = (places.empty() ? "what each did last" : places) + "\n" + rank_table(ranks, now);
  return out;
}

const char* plural(const std::vector<int>& ranks, const char* one, const char* several) {
  return ranks.size() == 1 ? one : several;
}

constexpr const char* kEndedAdvice =
    "look at the end of its log; where nobody killed it the system may have run out of memory: "
    "dmesg tells";
constexpr const char* kSilentAdvice =
    "see whether that machine runs and can be reached; comm.lost_seconds allows longer silence";

}  // namespace

std::string RankSeen::name() const {
  std::string out = fmt::format("rank {}", identity.rank);
  if (identity.host[0] != '\0') out += fmt::format(" on {}", identity.host);
  if (identity.address[0] != '\0' && std::string_view(identity.host) != identity.address) {
    out += fmt::format(" ({})", identity.address);
  }
  return out;
}

std::string RankSeen::place() const {
  const ProgressView& p = status.progress;
  std::string out = fmt::format("step {}, {}", with_commas(p.step), name_of(p.phase));
  if (!operations.empty()) out += "; started last: " + operations.back().text();
  if (p.waiting != 0) out += fmt::format("; waited in operation {}", p.waiting);
  return out;
}

std::string rank_table(const std::vector<RankSeen>& ranks, Time now) {
  std::string out = fmt::format("    {:>4}  {:<16} {:>9}  {:<26} {:<18} {}\n", "rank", "host",
                                "step", "phase", "last seen", "started last");
  for (const RankSeen& r : ranks) out += table_line(r, now);
  out.pop_back();
  return out;
}

RankVerdict leader_lost(const std::vector<RankSeen>& ranks, bool closed, Time now) {
  RankVerdict out = verdict_on(ranks, {0}, now);
  double silence = seconds_between(ranks[0].seen, now);
  out.headline =
      closed ? fmt::format("lost {}: its process ended", ranks[0].name())
             : fmt::format("lost {}: no sign of life for {:.1f} s", ranks[0].name(), silence);
  out.advice = closed ? kEndedAdvice : kSilentAdvice;
  return out;
}

std::optional<RankVerdict> FailureDetector::judge(std::vector<RankSeen>& ranks, Time now) {
  forgive_own_sleep(ranks, now);
  if (auto out = desynchronised(ranks, now)) return out;
  if (auto out = lost(ranks, now)) return out;
  if (auto out = failed(ranks, now)) return out;
  return in_trouble(ranks, now);
}

void FailureDetector::forgive_own_sleep(std::vector<RankSeen>& ranks, Time now) {
  constexpr double kAwake = 1.5;  // seconds between calls, at most
  if (last_ && seconds_between(*last_, now) > kAwake) {
    for (RankSeen& r : ranks) r.seen += now - *last_;
  }
  last_ = now;
}

std::optional<RankVerdict> FailureDetector::lost(const std::vector<RankSeen>& ranks,
                                                 Time now) const {
  std::vector<int> ended, silent;
  double wait = 0, silence = 0;
  // Ranks that were cut off together were heard last within a heartbeat of each other.
  const double nearly =
      std::max(options_.lost_seconds - 1.2 * options_.beat_seconds, 0.7 * options_.lost_seconds);
  for (const RankSeen& r : ranks) {
    if (r.presence == Presence::kClosed && r.failure.empty()) {
      ended.push_back(r.identity.rank);
      wait = std::max(wait, seconds_between(r.closed, now));
    }
    double quiet = seconds_between(r.seen, now);
    if (r.presence == Presence::kHere && r.identity.rank != 0 && quiet > nearly) {
      silent.push_back(r.identity.rank);
      silence = std::max(silence, quiet);
    }
  }
  if (!ended.empty() && wait >= kGather) {
    RankVerdict out = verdict_on(ranks, ended, now);
    out.headline = fmt::format("lost {}: {}", names_of(ranks, ended),
                               plural(ended, "its process ended", "their processes ended"));
    out.advice = kEndedAdvice;
    return out;
  }
  if (options_.lost_seconds > 0 && silence > options_.lost_seconds) {
    RankVerdict out = verdict_on(ranks, silent, now);
    out.headline =
        fmt::format("lost {}: no sign of life for {:.1f} s", names_of(ranks, silent), silence);
    out.advice = kSilentAdvice;
    return out;
  }
  return {};
}

std::optional<RankVerdict> FailureDetector::failed(const std::vector<RankSeen>& ranks,
                                                   Time now) const {
  const RankSeen* first = nullptr;
  for (const RankSeen& r : ranks) {
    if (r.failure.empty() || (first && first->failure_since <= r.failure_since)) continue;
    first = &r;
  }
  if (first == nullptr || seconds_between(first->failure_since, now) < kOwnFailure) return {};
  RankVerdict out = verdict_on(ranks, {first->identity.rank}, now);
  out.headline = fmt::format("{} failed: {}", first->name(), first->failure);
  out.advice = fmt::format("its log says more: logs/rank{:02}.error", first->identity.rank);
  return out;
}

// Compares what each rank issued with what rank 0 issued under the same number, or, where rank 0 is
// not there yet, the first rank that is.
std::optional<RankVerdict> FailureDetector::desynchronised(const std::vector<RankSeen>& ranks,
                                                           Time now) {
  uint64_t sequence = 0;               // the first operation that differs
  std::map<uint64_t, uint64_t> ahead;  // fingerprints of what rank 0 has not issued, by number
  for (const RankSeen& r : ranks) {
    if (r.identity.rank <= 0 || r.operations.empty()) continue;
    // A fingerprint is that of all operations before, too: mostly one comparison says all.
    const auto newest = mine_.operation(r.operations.back().sequence);
    if (newest && newest->fingerprint == r.operations.back().fingerprint) continue;
    for (const OperationRecord& theirs : r.operations) {
      const auto own = mine_.operation(theirs.sequence);
      const uint64_t expected =
          own ? own->fingerprint
              : ahead.try_emplace(theirs.sequence, theirs.fingerprint).first->second;
      if (expected == theirs.fingerprint) continue;
      if (sequence == 0 || theirs.sequence < sequence) sequence = theirs.sequence;
      break;
    }
  }
  if (sequence == 0) return {};
  std::map<std::string, std::vector<int>> issued;  // by text
  bool all = true;
  for (const RankSeen& r : ranks) {
    std::optional<OperationRecord> record;
    if (r.identity.rank == 0) record = mine_.operation(sequence);
    for (const OperationRecord& o : r.operations) {
      if (o.sequence == sequence) record = o;
    }
    if (record) issued[record->text()].push_back(r.identity.rank);
    all = all && record;
  }
  if (!differing_) differing_ = now;
  if (!all && seconds_between(*differing_, now) < kComparison) return {};

  std::vector<std::pair<std::string, std::vector<int>>> groups(issued.begin(), issued.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  bool minority = groups.size() > 1 && groups[0].second.size() < groups.back().second.size();
  RankVerdict out = verdict_on(ranks, {}, now);
  if (minority) out.ranks = groups[0].second;
  out.headline = "the ranks issue different operations: ";
  if (groups.size() < 2) {
    out.headline += fmt::format("they differ before operation {}", sequence);
  }
  for (std::size_t i = 0; groups.size() > 1 && i < groups.size(); ++i) {
    out.headline += fmt::format("{}{} issued {}",
                                i == 0                   ? ""
                                : i + 1 == groups.size() ? ", but "
                                                         : ", ",
                                names_of(ranks, groups[i].second), groups[i].first);
  }
  out.advice = "all ranks must run the same version with the same configuration and data";
  return out;
}

// The verdict when an operation failed on some rank and nobody is known to be lost.
std::optional<RankVerdict> FailureDetector::in_trouble(const std::vector<RankSeen>& ranks,
                                                       Time now) const {
  const RankSeen* first = nullptr;
  for (const RankSeen& r : ranks) {
    if (r.trouble.empty() || (first && first->trouble_since <= r.trouble_since)) continue;
    first = &r;
  }
  if (first == nullptr || seconds_between(first->trouble_since, now) < kExplanation) return {};
  if (auto stall = find_stall(ranks, now)) {
    const RankSeen& r = ranks[stall->rank];
    RankVerdict out = verdict_on(ranks, {stall->rank}, now);
    out.headline = fmt::format("{} hangs: others wait for it for {:.1f} s in {}", r.name(),
                               stall->seconds, stall->operation_text);
    out.advice = "look at its log; comm.timeout_seconds is how long others wait";
    return out;
  }
  for (const RankSeen& r : ranks) {
    if (r.presence != Presence::kDone) continue;
    RankVerdict out = verdict_on(ranks, {r.identity.rank}, now);
    out.headline = fmt::format("{} has left: it was done, others were not", r.name());
    out.advice = "all ranks must run the same version with the same configuration and data";
    return out;
  }
  RankVerdict out = verdict_on(ranks, {}, now);
  out.headline = fmt::format("an operation failed on {}: {}", first->name(), first->trouble);
  out.advice = "all ranks are there: look at the network between the machines";
  return out;
}

// Finds the rank that started fewest operations and waits for none, while
// others wait in a later one.
std::optional<FailureDetector::Stall> FailureDetector::find_stall(
    const std::vector<RankSeen>& ranks, Time now) const {
  const RankSeen* culprit = nullptr;
  for (const RankSeen& r : ranks) {
    bool busy = r.presence == Presence::kHere && r.status.progress.waiting == 0;
    if (!busy) continue;
    if (!culprit || r.status.progress.started < culprit->status.progress.started) culprit = &r;
  }
  if (culprit == nullptr) return {};
  Stall out{.rank = culprit->identity.rank, .phase = culprit->status.progress.phase};
  for (const RankSeen& r : ranks) {
    const ProgressView& p = r.status.progress;
    if (r.presence != Presence::kHere || p.waiting <= culprit->status.progress.started) continue;
    double seconds = p.waiting_seconds + seconds_between(r.seen, now);
    out.waiting.push_back(r.identity.rank);
    if (seconds < out.seconds) continue;
    out.seconds = seconds;
    out.operation = p.waiting;
    out.operation_text = fmt::format("operation {}", p.waiting);
    for (const OperationRecord& o : r.operations) {
      if (o.sequence == p.waiting) out.operation_text = o.text();
    }
  }
  if (out.waiting.empty()) return {};
  return out;
}

std::optional<std::string> FailureDetector::warning(const std::vector<RankSeen>& ranks, Time now) {
  if (options_.stall_seconds <= 0) return {};
  std::optional<Stall> stall = find_stall(ranks, now);
  auto goes_on = [&] {
    return !stall || stall->rank != stall_->rank || stall->operation != stall_->operation;
  };
  if (stall_ && goes_on()) {
    double& longest = longest_[static_cast<std::size_t>(stall_->phase)];
    longest = std::max(longest, stall_->seconds);
    stall_.reset();
  }
  if (!stall) return {};
  if (!stall_) {
    bool slow = stall->phase == Phase::kEvaluation || stall->phase == Phase::kCheckpoint ||
                stall->phase == Phase::kStarting;
    next_warning_seconds_ = std::max(options_.stall_seconds * (slow ? kPatience : 1),
                                     kUnusual * longest_[static_cast<std::size_t>(stall->phase)]);
  }
  stall_ = stall;
  if (stall->seconds < next_warning_seconds_) return {};
  next_warning_seconds_ = stall->seconds * 2;
  const RankSeen& r = ranks[stall->rank];
  return fmt::format(
      "{} hangs or is slow: {} rank{} wait{} for it for {:.0f} s in {}; it is in {} for {:.0f} s",
      r.name(), stall->waiting.size(), plural(stall->waiting, "", "s"),
      plural(stall->waiting, "s", ""), stall->seconds, stall->operation_text, r.place(),
      r.status.progress.phase_seconds + seconds_between(r.seen, now));
}

}  // namespace lockstep
