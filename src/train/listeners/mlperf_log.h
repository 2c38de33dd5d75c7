// The log of a run as MLPerf Training wants it (docs/run-folder.md#mlperf-logs): lines `:::MLLOG
// {...}` of its start, epochs, evaluations and end, as mlperf_logging's mllog writes them and its
// compliance_checker reads them (github.com/mlcommons/logging).
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "formats/hyper_parameters.h"
#include "train/config/run_config.h"
#include "train/records/observers.h"

namespace lockstep {

// What the lines say of a run besides its steps.
struct MlperfRun {
  std::string org, platform, division, status, benchmark;
  bool cache_cleared = false;
  int64_t began_ms = 0;  // when the program did, later the drop of the caches; ms since 1970
  int64_t seed = 1;
  int64_t batch_size = 0, accumulation = 1;  // items of a step over all ranks; micro-batches
  int64_t train_samples = 0, eval_samples = 0;
  double epochs_between = 1;  // from one evaluation to the next
  // Hyper-parameters by MLPerf's names.
  std::vector<std::pair<std::string, HyperValue>> settings;
  std::string metric;  // of evaluations
  double whole = 1;    // what a share of 1 is of it
  bool higher_is_better = true;
  std::optional<double> target;  // run_stop is when the metric reaches it
};

using CacheClear = std::optional<std::chrono::system_clock::time_point>;  // when; none: it was not

// Collective, before data are touched: where logging.mlperf and mlperf.clear_cache say so, the
// first rank of each host drops its caches. MachineError on all ranks when one may not.
CacheClear clear_caches(const RunConfig& config, World& world);

// Of a configuration, a task that was opened, and the ranks. DataError when evaluation.split is not
// there.
MlperfRun describe_mlperf_run(RunConfig& config, World& world, const CacheClear& cleared);

// Epochs and blocks are counted from 1. A block goes from one evaluation to the next.
class MlperfLog : public Observer {
 public:
  // Appends to nothing: FOLDER/mlperf_N.log, N the first number that is free. Throws MachineError
  // when the file cannot be written.
  MlperfLog(const fs::path& folder, MlperfRun run);
  void on_start(int64_t first_step, int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_evaluation(const EvaluationRecord& record) override;
  void on_end(const std::string& reason) override;

  const fs::path& path() const { return path_; }

 private:
  using Json = nlohmann::ordered_json;
  enum class Kind { kPoint, kStart, kEnd };
  struct Line {
    Kind kind = Kind::kPoint;
    int64_t ms = 0;  // not before the line above; that one's time if it is
  };
  void write(Line line, const std::string& key, const Json& value, Json metadata,
             std::source_location where = std::source_location::current());
  void say(const std::string& key, const Json& value,
           std::source_location where = std::source_location::current());
  Json place(int64_t step, int64_t epoch) const;
  void stop(bool success, int64_t step, int64_t epoch);
  bool reached(double value) const;

  MlperfRun run_;
  fs::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  int64_t last_ms_ = 0;
  int64_t step_ = 0, epoch_ = -1;  // of the newest step
  bool in_epoch_ = false;          // an epoch_start has no epoch_stop yet
  std::optional<int64_t> block_;   // the first epoch of the block that is open
  bool stopped_ = false;           // run_stop was written: nothing comes after it
};

}  // namespace lockstep
