// Writes metrics.jsonl: one JSON object per line for every step, evaluation and checkpoint
// (docs/run-folder.md#tags).
#pragma once

#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "base/file.h"
#include "train/listeners/straggler.h"
#include "train/records/observers.h"

namespace lockstep {

// A rank that the others have waited for during half a minute or more.
struct SlowRankRecord {
  double time = 0;   // seconds since 1970
  int64_t step = 0;  // the newest at that time
  Straggler straggler;
};

// Appends, so that a resumed run keeps its past. Throws MachineError when the file cannot be
// written.
class MetricsLog : public Observer {
 public:
  // `device` is rank 0's, as torch names it: "cpu", "cuda:0".
  MetricsLog(const fs::path& path, std::string device);
  // Says in the line of on_start() how large a step is (train/loop/step_sizes.h).
  void set_step_size(const nlohmann::ordered_json& figures);
  void on_start(int64_t first_step, int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_meeting(const MeetingRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_checkpoint(const CheckpointRecord& record) override;
  void on_intervention(const InterventionRecord& record) override;
  void on_end(const std::string& reason) override;
  // Writes how a plan's prediction compares with what was measured (train/listeners/plan_check.h).
  void on_plan(const nlohmann::ordered_json& comparison);
  // Writes the results of an epoch (train/listeners/epoch_table.h).
  void on_epoch(const nlohmann::ordered_json& figures);
  // Writes what a host did in the seconds before `time` (train/listeners/host_log.h).
  void on_host(double time, int64_t step, const nlohmann::ordered_json& figures);
  void on_slow_rank(const SlowRankRecord& record);
  // Writes what a mirror did (train/mirror/mirror.h), with the time it has.
  void on_mirror(double time, const nlohmann::ordered_json& figures);

 private:
  void write(const std::string& line);

  fs::path path_;
  std::string step_size_;  // JSON; empty: unknown
  std::string device_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace lockstep
