// What a launcher knows of its run beside its ranks: how far it is, what it has cost, who is told
// and when its budget ends. It does not wait: the launcher's loop asks it for deadlines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/ending/ending_options.h"
#include "launch/ending/notifier.h"
#include "launch/job/supervisor.h"

namespace lockstep {

class JobEnding {
 public:
  // `grace`: of a stop. The notifier's warnings go to `warn`.
  JobEnding(const EndingOptions& options, std::chrono::milliseconds grace, Notifier::Warn warn);

  const EndingOptions& options() const { return options_; }
  Notifier& notifier() { return notifier_; }

  // Takes a rank's report on steps, scores and checkpoints; others are not its matter.
  void take_report(const std::string& name, const std::string& value);
  // Puts what the launch has cost into the event.
  void add_cost(LaunchEvent& event) const;
  // Tells of an event, unless it is an everyday one. `hosts` and `ranks` of the attempt.
  void tell(const LaunchEvent& event, const std::string& host, const Attempt& attempt,
            std::vector<std::string> lines);
  // NAME=value for ranks: what `watch` shows of costs; empty without a price.
  std::string variable() const;

  enum class Due { kNothing, kCost, kNear, kStop };
  // What the clock brings now: each of kNear and kStop once.
  Due check_time(Clock::time_point now);
  std::optional<Clock::time_point> next_deadline() const;

  std::chrono::milliseconds grace_of_stop() const;  // long enough for the checkpoints seen
  double spent() const { return options_.spending.spent(seconds()); }
  std::string spent_text() const;  // "16.00 of 20.00"

 private:
  double seconds() const;
  Clock::time_point after(double seconds) const;
  Clock::time_point stop_time() const;

  EndingOptions options_;
  double grace_seconds_;
  Notifier notifier_;
  Clock::time_point started_ = Clock::now(), next_cost_;
  double began_;  // Unix seconds
  int64_t step_ = -1, steps_ = -1;
  std::string metric_;
  double value_ = 0, longest_checkpoint_ = 0;
  bool near_told_ = false, stop_told_ = false;
};

}  // namespace lockstep
