#include "dist/account/step_account.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace lockstep {
namespace {

bool computes(Phase phase) { return phase == Phase::kForward || phase == Phase::kBackward; }

// Whether the phase belongs to a step; evaluations and checkpoints come between two steps.
bool is_of_step(Phase phase) {
  return computes(phase) || phase == Phase::kData || phase == Phase::kWait ||
         phase == Phase::kOptimizer || phase == Phase::kOther;
}

// Shortens "all-reduce of gradient bucket 3" to "gradient bucket 3".
std::string_view short_name(std::string_view name) {
  for (std::string_view prefix : {"all-reduce of ", "sum of "}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

}  // namespace

void StepAccount::use(std::unique_ptr<DeviceClock> clock) {
  device_ = std::move(clock);
  last_mark_ = nullptr;
}

void StepAccount::enter(Phase phase, Time now) {
  const Phase before = phase_.load(std::memory_order_relaxed);
  if (device_) {
    DeviceClock::Mark mark = device_->mark();
    if (is_of_step(before) && last_mark_) device_parts_.push_back({before, last_mark_, mark});
    if (phase == Phase::kForward && !first_forward_) first_forward_ = mark;
    last_mark_ = std::move(mark);
  }
  spent_[static_cast<std::size_t>(before)] += now - since_;
  if (computes(before) && now > since_) computing_.push_back({since_, now});
  if (before == Phase::kWait) waited_until_ = now;
  if (phase == Phase::kWait && before != Phase::kWait && waited_until_ != Time{}) {
    busy_ += now - waited_until_;
  }
  const int64_t sent = moved_.sent(), received = moved_.received();
  if (is_of_step(before)) {
    sent_ += sent - seen_sent_;
    received_ += received - seen_received_;
  }
  seen_sent_ = sent;
  seen_received_ = received;
  if (recorder_.is_on() && before != Phase::kOther && now > since_) {
    recorder_.add({.row = SpanRow::kPhases, .step = step_.load(std::memory_order_relaxed)},
                  name_of(before), since_, now);
  }
  since_ = now;
  phase_.store(phase, std::memory_order_relaxed);
}

void StepAccount::begin_step(int64_t step, Time now) {
  enter(phase_.load(std::memory_order_relaxed), now);
  if (step == step_.load(std::memory_order_relaxed)) return;
  close();
  step_.store(step, std::memory_order_relaxed);
  is_open_ = true;
  begin_ = seconds_of(std::chrono::system_clock::now().time_since_epoch());
  recorder_.begin_step(step);
}

void StepAccount::end_step(Time now) {
  enter(phase_.load(std::memory_order_relaxed), now);
  close();
}

void StepAccount::close() {
  const int64_t step = step_.load(std::memory_order_relaxed);
  if (is_open_)
    ended_ = {.step = step, .begin = begin_, .times = so_far(), .busy = seconds_of(busy_)};
  ended_parts_ = is_open_ ? std::exchange(device_parts_, {}) : std::vector<DevicePart>();
  device_parts_.clear();
  first_forward_ = nullptr;
  is_open_ = false;
  spent_ = {};
  busy_ = {};
  sent_ = received_ = 0;
  computing_.clear();
  std::scoped_lock lock(mutex_);
  exchanges_.clear();
  stood_still_.clear();
  ended_device_exchanges_ = std::exchange(device_exchanges_, {});
}

// What is still under way adds nothing.
void StepAccount::add_device_times(const std::vector<DevicePart>& parts, RankTimes& out) const {
  out.data = out.forward = out.backward = out.wait = out.optimizer = out.other = 0;
  for (const DevicePart& part : parts) {
    if (!device_->passed(part.end)) continue;
    float& sum = part.phase == Phase::kData        ? out.data
                 : part.phase == Phase::kForward   ? out.forward
                 : part.phase == Phase::kBackward  ? out.backward
                 : part.phase == Phase::kWait      ? out.wait
                 : part.phase == Phase::kOptimizer ? out.optimizer
                                                   : out.other;
    sum += static_cast<float>(device_->seconds_between(part.begin, part.end));
  }
}

double StepAccount::seconds_of_device_until(const DeviceClock::Mark& mark) const {
  return first_forward_ ? device_->seconds_between(first_forward_, mark) : 0;
}

const AccountedStep& StepAccount::ended() {
  if (ended_parts_.empty()) return ended_;
  const DevicePart& last = ended_parts_.back();
  device_->seconds_between(last.begin, last.end);
  RankTimes& times = ended_.times;
  add_device_times(ended_parts_, times);
  double exchanged = 0;
  for (const std::function<double()>& seconds : ended_device_exchanges_) exchanged += seconds();
  times.hidden = std::max(0.0F, static_cast<float>(exchanged) - times.wait);
  ended_parts_.clear();
  ended_device_exchanges_.clear();
  return ended_;
}

RankTimes StepAccount::so_far() const {
  auto spent = [this](Phase phase) {
    return static_cast<float>(seconds_of(spent_[static_cast<std::size_t>(phase)]));
  };
  RankTimes out{.data = spent(Phase::kData),
                .forward = spent(Phase::kForward),
                .backward = spent(Phase::kBackward),
                .wait = spent(Phase::kWait),
                .optimizer = spent(Phase::kOptimizer),
                .other = spent(Phase::kOther),
                .hidden = static_cast<float>(hidden_seconds()),
                .peers = 0,
                .sent_bytes = static_cast<float>(sent_),
                .received_bytes = static_cast<float>(received_)};
  if (device_) {
    add_device_times(device_parts_, out);
    out.hidden = 0;
  }
  return out;
}

void StepAccount::device_exchange(std::function<double()> seconds) {
  if (!device_ || !is_of_step(phase_.load(std::memory_order_relaxed))) return;
  std::scoped_lock lock(mutex_);
  device_exchanges_.push_back(std::move(seconds));
}

void StepAccount::exchange(std::string_view name, Time begin, Time end, int64_t bytes) {
  if (recorder_.is_on()) {
    recorder_.add(
        {.row = SpanRow::kExchange, .step = step_.load(std::memory_order_relaxed), .bytes = bytes},
        short_name(name), begin, end);
  }
  // Exchanges outside of steps are left out: an evaluation has many of its own, and a step can hide
  // none of them.
  if (!is_of_step(phase_.load(std::memory_order_relaxed))) return;
  std::scoped_lock lock(mutex_);
  exchanges_.push_back({begin, end});
}

void StepAccount::stood_still(Time begin, Time end) {
  if (!computes(phase_.load(std::memory_order_relaxed))) return;
  std::scoped_lock lock(mutex_);
  stood_still_.push_back({begin, end});
}

void StepAccount::background(std::string_view name, Time begin, Time end) {
  if (!recorder_.is_on()) return;
  recorder_.add({.row = SpanRow::kBackground, .step = step_.load(std::memory_order_relaxed)}, name,
                begin, end);
}

// Returns the total overlap of two lists of intervals. REQUIRES: each is sorted by begin and has no
// overlaps in itself.
StepAccount::Clock::duration StepAccount::overlap(const Intervals& exchanges,
                                                  const Intervals& others) {
  Clock::duration out{};
  for (std::size_t a = 0, b = 0; a < exchanges.size() && b < others.size();) {
    const Time begin = std::max(exchanges[a].begin, others[b].begin);
    const Time end = std::min(exchanges[a].end, others[b].end);
    if (end > begin) out += end - begin;
    exchanges[a].end < others[b].end ? ++a : ++b;
  }
  return out;
}

double StepAccount::hidden_seconds() const {
  Intervals exchanges, still;
  {
    std::scoped_lock lock(mutex_);
    exchanges = exchanges_;
    still = stood_still_;
  }
  if (exchanges.empty() || computing_.empty()) return 0;
  auto earlier = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  std::sort(exchanges.begin(), exchanges.end(), earlier);
  std::sort(still.begin(), still.end(), earlier);
  Intervals merged;  // several may be under way at once
  for (const Interval& i : exchanges) {
    if (merged.empty() || i.begin > merged.back().end) {
      merged.push_back(i);
    } else {
      merged.back().end = std::max(merged.back().end, i.end);
    }
  }
  return std::max(0.0, seconds_of(overlap(merged, computing_) - overlap(merged, still)));
}

}  // namespace lockstep
