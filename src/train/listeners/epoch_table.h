// Writes epochs.csv of a run folder: one line per epoch with the results of training and of the
// evaluation at its end (docs/run-folder.md#epochscsv). metrics.jsonl gets the same as an event.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "train/listeners/metrics_log.h"
#include "train/records/observers.h"

namespace lockstep {

class EpochTable : public Observer {
 public:
  // Appends, so that a resumed run keeps its past. `metrics` names what evaluations may report, one
  // column each. `log` must outlive this. Throws MachineError when the file cannot be written.
  EpochTable(const fs::path& path, std::vector<std::string> metrics, MetricsLog& log);

  void on_step(const StepRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_end(const std::string& reason) override;

 private:
  // Sums over the steps of an epoch that this process took.
  struct Epoch {
    int64_t epoch = 0, step = 0, steps = 0, items = 0;
    double targets = 0, loss = 0, accuracy = 0, lr = 0, seconds = 0;
    bool whole = false;  // its last step was taken
    std::optional<Evaluation> evaluation;
  };

  void finish();  // writes the epoch's line, if there is one

  fs::path path_;
  std::vector<std::string> metrics_;
  MetricsLog& log_;
  std::optional<Epoch> now_;
};

}  // namespace lockstep
