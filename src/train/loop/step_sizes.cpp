#include "train/loop/step_sizes.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace lockstep {

namespace {

// Whether the schedule's value depends on how many steps the run has.
bool spans_the_run(const ScheduleConfig& config) {
  const std::vector<std::string>& keys = schedules().get(config.name).keys;
  auto reads = [&](const char* key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  return reads("pct_start") || reads("warmup_ratio") ||
         (reads("decay_steps") && config.decay_steps == 0);
}

std::string size_text(const BatchSize& size) {
  return fmt::format("{} {}", with_commas(size.size), size.items);
}

std::string plural(int64_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// Returns "2 (linear) or 1.41 (square root)".
std::string scaled_rates(double lr, double ratio) {
  return fmt::format("{:.3g} (linear) or {:.3g} (square root)", lr * ratio, lr * std::sqrt(ratio));
}

}  // namespace

std::string step_size_text(const StepSizeFacts& f) {
  std::string out = size_text(f.step) + " a step";
  const int64_t parts = f.ranks * f.micro_batches;
  if (f.per_rank > 0) {
    out += fmt::format(" ({} a rank x {}", with_commas(f.per_rank), plural(f.ranks, "rank"));
    if (f.micro_batches > 1) out += fmt::format(" x {} micro-batches", f.micro_batches);
    out += ")";
  } else if (f.ranks > 1) {
    out += fmt::format(" (over {})", plural(f.ranks, "rank"));
  }
  out += fmt::format(", {} steps an epoch", with_commas(f.updates_an_epoch));
  if (f.per_rank > 0 && parts > 1) {
    out += fmt::format("; optimizer.lr = {} is as configured: made for {} {}, it scales to {}",
                       f.lr, with_commas(f.per_rank), f.step.items,
                       scaled_rates(f.lr, static_cast<double>(parts)));
  }
  return out;
}

nlohmann::ordered_json to_json(const StepSizeFacts& f) {
  nlohmann::ordered_json out = {{"items", f.step.items},
                                {"step", f.step.size},
                                {"ranks", f.ranks},
                                {"updates_an_epoch", f.updates_an_epoch}};
  if (f.per_rank > 0) {
    out["per_rank"] = f.per_rank;
    out["micro_batches"] = f.micro_batches;
  }
  if (f.before) out["step_before"] = f.before->size;
  return out;
}

std::optional<BatchSize> continue_epoch(Task& task, const ScheduleConfig& schedule, int64_t epochs,
                                        RunPosition& position) {
  const BatchSize now = task.step_size(), before = position.step_size;
  if (now.size == 0) return std::nullopt;
  const bool changed = position.step > 0 && before.size > 0 && before != now;
  if (changed) {
    int64_t steps = position.step_in_epoch;
    for (const EpochStretch& stretch : position.done) steps -= stretch.steps;
    if (steps > 0) position.done.push_back({steps, before});
  }
  position.step_size = now;
  if (!position.done.empty()) task.continue_epoch(position.epoch, position.done);
  if (!changed) return std::nullopt;
  if (epochs > 0 && spans_the_run(schedule)) {
    const int64_t left = task.steps_in_epoch(position.epoch) - position.step_in_epoch;
    const int64_t of_epoch = task.steps_in_epoch(position.epoch + 1);
    position.schedule_shift = (position.epoch + 1) * of_epoch - left - position.step;
  }
  return before;
}

std::string changed_size_text(const StepSizeFacts& f, const RunPosition& position) {
  std::string out = fmt::format(
      "from step {} on a step has {}, no longer {}; each of the epoch's other {} occurs once",
      with_commas(position.step + 1), size_text(f.step), size_text(*f.before),
      f.step.items == "tokens" ? "sentences" : f.step.items);
  if (f.step.items != f.before->items) return out;
  const double ratio = static_cast<double>(f.step.size) / static_cast<double>(f.before->size);
  return out + fmt::format("; optimizer.lr = {} stays: scaled with the step, it would be {}", f.lr,
                           scaled_rates(f.lr, ratio));
}

}  // namespace lockstep
