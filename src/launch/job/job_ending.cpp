#include "launch/job/job_ending.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/clock.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::chrono::minutes kCostEvery{5};

// What happens in every run, and what is told when all is known.
constexpr std::array<std::string_view, 5> kEveryday = {"start", "first_step", "signal", "cost",
                                                       "host_away"};

}  // namespace

JobEnding::JobEnding(const EndingOptions& options, std::chrono::milliseconds grace,
                     Notifier::Warn warn)
    : options_(options),
      grace_seconds_(seconds_of(grace)),
      notifier_(options.notify, std::move(warn)),
      next_cost_(started_ + kCostEvery),
      began_(unix_seconds()) {}

double JobEnding::seconds() const { return seconds_since(started_); }

void JobEnding::take_report(const std::string& name, const std::string& value) {
  if (name == "at") {
    const std::size_t slash = value.find('/');
    step_ = std::atoll(value.c_str());
    steps_ = slash == std::string::npos ? -1 : std::atoll(value.c_str() + slash + 1);
  } else if (name == "scored") {
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos) return;
    metric_ = value.substr(0, equals);
    value_ = std::atof(value.c_str() + equals + 1);
  } else if (name == "checkpoint_seconds") {
    longest_checkpoint_ = std::max(longest_checkpoint_, std::atof(value.c_str()));
  }
}

void JobEnding::add_cost(LaunchEvent& event) const {
  if (options_.spending.per_hour <= 0) return;
  event.cost = options_.spending.here(seconds());
  event.per_hour = options_.spending.per_hour;
}

void JobEnding::tell(const LaunchEvent& event, const std::string& host, const Attempt& attempt,
                     std::vector<std::string> lines) {
  if (options_.notify.empty() || event.text.empty()) return;
  if (std::find(kEveryday.begin(), kEveryday.end(), event.event) != kEveryday.end()) return;
  const bool diverged = event.event == "failure" && event.exit_code == kExitDiverged;
  Notice notice{.event = diverged ? "divergence" : event.event,
                .text = event.text,
                .run = options_.run,
                .host = host,
                .step = step_,
                .steps = steps_,
                .metric = metric_,
                .value = value_,
                .hours = seconds() / 3600,
                .hosts = std::max<int>(1, static_cast<int>(attempt.hosts.size())),
                .ranks = attempt.ranks,
                .exit_code = event.exit_code,
                .lines = std::move(lines)};
  if (options_.spending.per_hour > 0) {
    notice.cost = spent();
    notice.budget = options_.spending.budget;
  }
  notifier_.tell(notice);
}

std::string JobEnding::variable() const {
  const Spending& s = options_.spending;
  if (s.per_hour <= 0) return "";
  return fmt::format("LOCKSTEP_COST={} {} {} {}", s.before, s.per_hour, s.budget, began_);
}

std::string JobEnding::spent_text() const {
  const Spending& s = options_.spending;
  return s.budget > 0 ? fmt::format("{:.2f} of {:.2f}", spent(), s.budget)
                      : fmt::format("{:.2f}", spent());
}

std::chrono::milliseconds JobEnding::grace_of_stop() const {
  const double seconds = std::max(grace_seconds_, 2 * longest_checkpoint_);
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

Clock::time_point JobEnding::after(double seconds) const {
  constexpr double kLongest = 100 * 365 * 86400.0;  // a budget that never ends
  return started_ + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(std::min(seconds, kLongest)));
}

Clock::time_point JobEnding::stop_time() const {
  return after(options_.spending.stop_after(stop_margin(grace_seconds_, longest_checkpoint_)));
}

JobEnding::Due JobEnding::check_time(Clock::time_point now) {
  notifier_.check_time(now);
  const Spending& s = options_.spending;
  if (s.per_hour <= 0) return Due::kNothing;
  if (s.budget > 0 && !stop_told_ && now >= stop_time()) {
    stop_told_ = near_told_ = true;
    return Due::kStop;
  }
  if (s.budget > 0 && !near_told_ && now >= after(s.seconds_until(kNearBudget))) {
    near_told_ = true;
    return Due::kNear;
  }
  if (now < next_cost_) return Due::kNothing;
  next_cost_ = now + kCostEvery;
  return Due::kCost;
}

std::optional<Clock::time_point> JobEnding::next_deadline() const {
  std::optional<Clock::time_point> next = notifier_.next_deadline();
  const Spending& s = options_.spending;
  if (s.per_hour <= 0) return next;
  next = earlier(next, next_cost_);
  if (s.budget > 0 && !stop_told_) next = earlier(next, stop_time());
  if (s.budget > 0 && !near_told_) next = earlier(next, after(s.seconds_until(kNearBudget)));
  return next;
}

}  // namespace lockstep
