#include "train/listeners/progress_line.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/text.h"

namespace lockstep {

std::string progress_text(const StepRecord& mean, double targets_per_second, double eta_seconds,
                          const std::string& unit) {
  auto ms = [](double seconds) { return with_commas(std::llround(seconds * 1000)); };
  return fmt::format(
      "step {:>6}/{}  loss {:.3f}  lr {:.2e}  norm {:.2f}  {} ms (compute {} wait {} data {})  {} "
      "{}/s  eta {}",
      with_commas(mean.step), with_commas(mean.total_steps), mean.loss, mean.lr, mean.gradient_norm,
      ms(mean.seconds), ms(mean.compute_seconds), ms(mean.wait_seconds), ms(mean.data_seconds),
      short_number(targets_per_second), unit, short_duration(eta_seconds));
}

ProgressLine::ProgressLine(int64_t every, double minutes, std::string unit)
    : every_(every), minutes_(minutes), unit_(std::move(unit)) {}

void ProgressLine::on_start(int64_t, int64_t) { start_ = std::chrono::steady_clock::now(); }

double ProgressLine::eta_seconds(const StepRecord& record) const {
  double left = static_cast<double>(record.total_steps - record.step) * recent_step_seconds_;
  if (minutes_ == 0) return left;
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return std::min(left, std::max(0.0, minutes_ * 60 - elapsed.count()));
}

void ProgressLine::on_step(const StepRecord& record) {
  auto targets = static_cast<double>(record.targets);
  sum_.loss += record.loss * targets;
  sum_.gradient_norm += record.gradient_norm;
  sum_.targets += record.targets;
  sum_.seconds += record.seconds;
  sum_.compute_seconds += record.compute_seconds;
  sum_.wait_seconds += record.wait_seconds;
  sum_.data_seconds += record.data_seconds;
  ++steps_in_sum_;
  bool due = record.step % every_ == 0 || record.step == 1 || record.step == record.total_steps;
  if (!due) return;

  auto steps = static_cast<double>(steps_in_sum_);
  StepRecord mean = record;  // keeps step and learning rate
  mean.loss = sum_.loss / static_cast<double>(std::max<int64_t>(1, sum_.targets));
  mean.gradient_norm = sum_.gradient_norm / steps;
  mean.seconds = sum_.seconds / steps;
  mean.compute_seconds = sum_.compute_seconds / steps;
  mean.wait_seconds = sum_.wait_seconds / steps;
  mean.data_seconds = sum_.data_seconds / steps;
  bool first = recent_step_seconds_ == 0 || record.step <= every_;  // the first step warms up
  recent_step_seconds_ = first ? mean.seconds : 0.7 * recent_step_seconds_ + 0.3 * mean.seconds;
  double rate = static_cast<double>(sum_.targets) / sum_.seconds;
  show_progress(progress_text(mean, rate, eta_seconds(record), unit_));
  sum_ = {};
  steps_in_sum_ = 0;
}

void ProgressLine::on_evaluation(const EvaluationRecord& record) {
  std::string best =
      record.improved.empty() ? "" : fmt::format("  best {} so far", join(record.improved, ", "));
  log_info("eval at step {}: {}{}  ({:.1f} s)", with_commas(record.step), record.result->summary,
           best, record.seconds);
  for (const Sample& sample : record.result->samples) {
    log_info("  source     {}\n  reference  {}\n  output     {}", sample.source, sample.reference,
             sample.output);
  }
}

void ProgressLine::on_checkpoint(const CheckpointRecord& record) {
  log_info("saved {} ({}, {:.2f} s)", record.name, short_bytes(static_cast<double>(record.bytes)),
           record.write_seconds);
}

void ProgressLine::on_end(const std::string&) { end_progress(); }

}  // namespace lockstep
