// Compares measured with predicted step times: a run that `lockstep plan` predicted says at its end
// how well the plan fits, by part (docs/before-a-run.md#predicted-against-measured).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "train/listeners/metrics_log.h"
#include "train/records/observers.h"

namespace lockstep {

inline constexpr const char* kPlanName = "plan.json";  // in a run folder

// The step that a plan predicts, in seconds.
struct PlannedStep {
  fs::path file;
  int ranks = 1;  // that the plan was made for
  double seconds = 0, compute = 0, wait = 0, data = 0;
};

// Reads the plan `given` (run.plan) or, when that is empty, a plan.json in the run folder; returns
// nothing when there is none. Throws DataError for a file that is no plan.
std::optional<PlannedStep> find_plan(const std::string& given, const fs::path& run_folder);

// Compares at the end of the run, in one line on the console and one in metrics.jsonl. The measured
// step is the median over means of two in a row; the first steps, which warm up, do not count.
class PlanObserver : public Observer {
 public:
  // `ranks` is that of this run. `log` must outlive this.
  PlanObserver(PlannedStep plan, int ranks, MetricsLog& log);
  void on_step(const StepRecord& record) override;
  void on_end(const std::string& reason) override;

 private:
  PlannedStep plan_;
  int ranks_;
  MetricsLog& log_;
  int64_t seen_ = 0;
  std::vector<double> seconds_, compute_, wait_, data_;
};

// "predicted 1,283 ms a step (compute 901 wait 378 data 4), measured 1,301 ms (...): +1.4 %"
std::string plan_text(const PlannedStep& predicted, const PlannedStep& measured);

}  // namespace lockstep
