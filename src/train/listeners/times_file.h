// Writes RUN/times/attempt_N.bin: the times of every rank's steps
// (docs/run-folder.md#times-of-every-rank).
#pragma once

#include <chrono>

#include "formats/step_times.h"
#include "train/records/observers.h"

namespace lockstep {

class TimesFile : public Observer {
 public:
  // `folder` is the run's folder of times, made with the first step. Throws MachineError when it
  // cannot be written.
  TimesFile(const fs::path& folder, int ranks) : writer_(folder, ranks) {}
  void on_times(const StepTimes& times) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_end(const std::string& reason) override;

 private:
  using Clock = std::chrono::steady_clock;
  StepTimesWriter writer_;
  Clock::time_point flushed_ = Clock::now();
};

}  // namespace lockstep
