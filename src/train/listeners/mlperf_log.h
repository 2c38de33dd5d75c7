// Writes the log of a run in MLPerf Training's format (docs/run-folder.md#mlperf-logs): lines
// `:::MLLOG {...}` of its start, epochs, evaluations and end, as mlperf_logging's mllog writes them
// and its compliance_checker reads them (github.com/mlcommons/logging).
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
  int64_t began_ms = 0;  // when the program started or, later, dropped the caches; ms since 1970
  int64_t seed = 1;
  int64_t batch_size = 0, accumulation = 1;  // items of a step over all ranks; micro-batches
  int64_t train_samples = 0, eval_samples = 0;
  double epochs_between = 1;  // from one evaluation to the next
  // Hyper-parameters under MLPerf's names.
  std::vector<std::pair<std::string, HyperValue>> settings;
  std::string metric;  // of evaluations
  double whole = 1;    // the metric's value that MLPerf calls 1
  bool higher_is_better = true;
  std::optional<double> target;  // run_stop is written when the metric reaches it
};

// When the caches were dropped, if they were.
using CacheClear = std::optional<std::chrono::system_clock::time_point>;

// Drops the caches of each host, by its first rank, if logging.mlperf and mlperf.clear_cache ask
// for it. Call it before data are touched. Throws MachineError on all ranks when one may not
// do it. Collective.
CacheClear clear_caches(const RunConfig& config, World& world);

// Describes a run from its configuration, its opened task and the ranks. Throws DataError when
// evaluation.split does not exist.
MlperfRun describe_mlperf_run(RunConfig& config, World& world, const CacheClear& cleared);

// Epochs and blocks count from 1. A block spans from one evaluation to the next.
class MlperfLog : public Observer {
 public:
  // Writes a new file FOLDER/mlperf_N.log, where N is the first free number. Throws MachineError
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
    int64_t ms = 0;  // raised to the previous line's time if earlier
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
  bool in_epoch_ = false;          // an epoch_start without its epoch_stop was written
  std::optional<int64_t> block_;   // the first epoch of the open block
  bool stopped_ = false;           // run_stop was written: nothing may follow
};

}  // namespace lockstep
