// The whole configuration of a run: the sections that every run has, and those that its task and
// its optimizer add.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/fields.h"
#include "config/source.h"
#include "dist/gradients/comm_hooks.h"
#include "optim/optimizers/larc.h"
#include "optim/optimizers/loss_scaler.h"
#include "optim/optimizers/optimizer.h"
#include "optim/schedules/schedules.h"
#include "tasks/task.h"
#include "train/parts/divergence.h"
#include "train/parts/local_steps.h"
#include "train/parts/outliers.h"
#include "train/parts/trace_windows.h"
#include "train/parts/validation.h"

namespace lockstep {

struct RunSection {
  std::string folder;
  int64_t seed = 1;
  std::string device = "auto";
  std::string precision = "auto";
  bool fused = true;
  std::string load_model, plan;
  std::vector<std::string> plain_operations;
  void describe(Fields& f);
};

struct TrainingSection {
  int64_t steps = 10000;
  int64_t epochs = 0;
  double minutes = 0;
  double clip_norm = 1.0;
  std::string gradient_mean = "targets";
  double average_decay = 0;
  std::vector<std::string> freeze, no_decay;
  bool decay_vectors = true;
  bool shard_optimizer = false;
  bool fit_memory = false;
  double fit_megabytes = 0;
  DivergenceConfig divergence;
  int64_t check_weights_every = 500;
  int64_t progress_every = 20;
  std::string reproducible = "same-ranks";
  int64_t virtual_shards = 4;
  bool any_ranks() const { return reproducible == "any-ranks"; }
  void describe(Fields& f);
};

struct EvaluationSection {
  int64_t every = 1000, every_epochs = 0;
  std::string split = "dev";
  int64_t limit = 0;
  std::vector<std::string> metrics;
  int64_t samples = 3;
  int64_t patience = 0;
  std::string patience_metrics = "first";
  double min_improvement = 0;
  // Values that `metrics` may take: those of the task, set before describe().
  std::vector<std::string> known_metrics;
  bool is_on() const { return every > 0 || every_epochs > 0; }
  void describe(Fields& f);
};

struct LoggingSection {
  std::string style = "auto";
  bool pictures = true;
  int64_t histograms_every = 0;
  bool mlperf = false;
  void describe(Fields& f);
};

// Says who runs what in the lines of logging.mlperf (docs/run-folder.md#mlperf-logs); the names are
// MLPerf's.
struct MlperfSection {
  std::string submission_org = "not submitted";
  std::string submission_platform = "auto";
  std::string submission_division = "open";
  std::string submission_status = "research";
  std::string submission_benchmark = "auto";
  double target = 0;
  bool clear_cache = false;
  void describe(Fields& f);
};

struct MonitorSection {
  double every_seconds = 5;
  void describe(Fields& f);
};

struct CheckpointSection {
  int64_t every = 1000;
  int64_t keep = 2;
  int64_t keep_best = 1;
  bool background = true;
  std::string every_machine = "auto";
  std::string mirror;
  int64_t mirror_keep = 2;
  double mirror_wait_seconds = 600;
  void describe(Fields& f);
};

struct CommSection {
  CommHookConfig hooks;
  LocalStepsConfig local;
  double bucket_megabytes = 4;
  int64_t timeout_seconds = 300;
  double lost_seconds = 5;
  double stall_seconds = 15;
  bool shared_memory = true;
  int64_t streams = 4;
  std::string gpu_exchange = "nccl";
  bool shares_gpus() const { return gpu_exchange == "host"; }
  void describe(Fields& f);
};

// Owns the task and the optimizer's settings. Movable.
struct RunConfig {
  RunSection run;
  TrainingSection training;
  ScheduleConfig schedule;
  LarcConfig larc;
  LossScaleConfig loss_scale;
  EvaluationSection evaluation;
  CheckpointSection checkpoint;
  LoggingSection logging;
  MonitorSection monitor;
  MlperfSection mlperf;
  CommSection comm;
  TraceSection trace;
  GuardConfig guard;
  std::string task_name = "translation";
  std::string optimizer_name = "adam";
  std::unique_ptr<Task> task;
  std::unique_ptr<OptimizerConfig> optimizer;

  // Visits every section in the order of the saved file; reading uses it as well.
  void describe(Fields& f);
  std::string to_toml();  // the effective configuration

  ValidationRules validation_rules() const;
  std::string log_style() const;  // "lockstep" or "imagenet"
};

// Reads a file and `key=value` words. Throws one ConfigError with all errors.
RunConfig read_run_config(ConfigSource source);
RunConfig read_run_config(const fs::path& path, const std::vector<std::string>& words);

// Returns cuda when asked for or, with auto, when there is a GPU for this rank. Throws MachineError
// when a GPU is asked for and absent, or when this host has GPUs, but fewer than ranks.
torch::Device choose_device(const RunConfig& config, int local_rank, int local_size);

// Returns kFloat, kBFloat16 or kHalf, and the kernels to use. REQUIRES a resolved precision
// (train/config/precision.h), not "auto".
Numerics choose_numerics(const RunSection& run);

}  // namespace lockstep
