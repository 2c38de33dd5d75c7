// TensorBoard: the same numbers under the same tags as metrics.jsonl (docs/metrics.md).
#pragma once

#include <string>

#include "formats/event_file.h"
#include "train/observers.h"

namespace lockstep {

class EventObserver : public Observer {
 public:
  // config: the effective configuration, shown on TensorBoard's text page. style: of the log; with
  // "imagenet" the tags of PyTorch's ImageNet example are there as well, accuracies in percent.
  EventObserver(const fs::path& folder, std::string config, const std::string& style = "lockstep");
  void on_start(int64_t first_step, int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_end(const std::string& reason) override;
  // One point that another observer measured.
  void scalar(const std::string& tag, int64_t step, double value, double wall_time) {
    writer_.scalar(tag, step, value, wall_time);
  }

 private:
  EventWriter writer_;
  std::string config_;
  bool imagenet_;
};

}  // namespace lockstep
