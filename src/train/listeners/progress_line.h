// Writes progress to the console: one line every few steps, redrawn in place on a terminal.
#pragma once

#include <chrono>
#include <string>

#include "train/records/observers.h"

namespace lockstep {

// Returns the line for the mean of some steps; a negative eta_seconds is unknown.
std::string progress_text(const StepRecord& mean, double targets_per_second, double eta_seconds,
                          const std::string& unit);

class ProgressLine : public Observer {
 public:
  // `minutes` is the run's time limit, 0 for none.
  ProgressLine(int64_t every, double minutes, std::string unit);
  void on_start(int64_t first_step, int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_checkpoint(const CheckpointRecord& record) override;
  void on_end(const std::string& reason) override;

 private:
  double eta_seconds(const StepRecord& record) const;

  int64_t every_;
  double minutes_;
  std::string unit_;
  StepRecord sum_;  // of the steps since the last line
  int64_t steps_in_sum_ = 0;
  double recent_step_seconds_ = 0;  // smoothed over lines
  std::chrono::steady_clock::time_point start_;
};

}  // namespace lockstep
