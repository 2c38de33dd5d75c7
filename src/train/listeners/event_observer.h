// Writes TensorBoard events: the same numbers under the same tags as metrics.jsonl
// (docs/run-folder.md#tags).
#pragma once

#include <string>

#include "formats/event_file.h"
#include "train/parts/weight_histograms.h"
#include "train/records/observers.h"

namespace lockstep {

struct EventContent {
  std::string config;  // the effective configuration, for TensorBoard's page TEXT
  // The log style. "imagenet" adds the tags of PyTorch's ImageNet example, with accuracies in
  // percent.
  std::string style = "lockstep";
  HyperParameters hyper = {};              // for the page HPARAMS
  WeightHistograms* histograms = nullptr;  // of due steps; must outlive the observer
};

class EventObserver : public Observer {
 public:
  EventObserver(const fs::path& folder, EventContent content);
  void on_start(int64_t first_step, int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_end(const std::string& reason) override;
  // Writes one point that another observer measured.
  void scalar(const std::string& tag, int64_t step, double value, double wall_time) {
    writer_.scalar(tag, step, value, wall_time);
  }

 private:
  void write_samples(const EvaluationRecord& record);

  EventWriter writer_;
  EventContent content_;
  bool imagenet_;
};

}  // namespace lockstep
