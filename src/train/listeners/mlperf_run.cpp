// Describes a run for its MLPerf log, from its configuration and task (mlperf_log.h).
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "base/text.h"
#include "optim/optimizers/catalogue.h"
#include "train/config/hyper_fields.h"
#include "train/listeners/mlperf_log.h"
#include "train/parts/agreement.h"
#include "train/records/page_cache.h"

namespace lockstep {

namespace {

int64_t ms_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// Initialized before main(): the program's start, but for loading its libraries.
const std::chrono::system_clock::time_point kProgramStart = std::chrono::system_clock::now();

std::string platform_text(World& world, Task& task) {
  const auto machines = static_cast<int64_t>(world.machines().size());
  return fmt::format("{} x {} on {} machine{}, {} thread{} each", world.size(),
                     task.parameters().values().device().str(), machines, machines == 1 ? "" : "s",
                     at::get_num_threads(), at::get_num_threads() == 1 ? "" : "s");
}

// Returns MLPerf's name of an optimizer's key, as in mllog/constants.py.
std::string setting_name(const std::string& optimizer, const std::string& key) {
  static const std::map<std::string, std::string> kEndings = {{"beta1", "beta_1"},
                                                              {"beta2", "beta_2"},
                                                              {"epsilon", "epsilon"},
                                                              {"momentum", "momentum"},
                                                              {"weight_decay", "weight_decay"}};
  const auto ending = kEndings.find(key);
  if (ending == kEndings.end()) return "";
  if (optimizer == "sgd") return "sgd_opt_" + ending->second;
  if (key == "weight_decay" && optimizer != "adamw") return "opt_weight_decay";
  const std::string family = optimizer == "lazy_adam" ? "adam" : optimizer;
  return fmt::format("opt_{}_{}", family, ending->second);
}

std::vector<std::pair<std::string, HyperValue>> settings_of(RunConfig& config) {
  const std::string& optimizer = config.optimizer_name;
  const double lr = config.optimizer->lr();
  std::vector<std::pair<std::string, HyperValue>> out = {{"opt_name", optimizer},
                                                         {"opt_base_learning_rate", lr}};
  if (optimizer == "sgd") out.emplace_back("sgd_opt_base_learning_rate", lr);
  const std::string prefix = "optimizer.";
  for (const auto& [key, value] : configuration_values(config)) {
    if (!key.starts_with(prefix)) continue;
    const std::string name = setting_name(optimizer, key.substr(prefix.size()));
    if (!name.empty()) out.emplace_back(name, value);
  }
  const ScheduleConfig& schedule = config.schedule;
  const std::vector<std::string>& read = schedules().get(schedule.name).keys;
  out.emplace_back("opt_learning_rate_decay_schedule", schedule.name);
  if (std::count(read.begin(), read.end(), "warmup_steps") > 0) {
    out.emplace_back("opt_learning_rate_warmup_steps", static_cast<double>(schedule.warmup_steps));
  }
  if (config.training.steps > 0) {
    out.emplace_back("opt_learning_rate_training_steps",
                     static_cast<double>(config.training.steps));
  }
  if (config.training.clip_norm > 0) {
    out.emplace_back("opt_gradient_clip_norm", config.training.clip_norm);
  }
  const std::string& precision = config.run.precision;
  out.emplace_back("lowest_numerical_precision_in_linear",
                   precision == "bf16" ? std::string("bfloat16") : precision);
  return out;
}

double epochs_between(const EvaluationSection& evaluation, int64_t steps_in_epoch) {
  if (evaluation.every_epochs > 0) return static_cast<double>(evaluation.every_epochs);
  const double share = static_cast<double>(evaluation.every) / static_cast<double>(steps_in_epoch);
  return std::max(1e-4, std::round(share * 1e4) / 1e4);
}

}  // namespace

CacheClear clear_caches(const RunConfig& config, World& world) {
  if (!config.logging.mlperf || !config.mlperf.clear_cache) return std::nullopt;
  together(world, [&] {
    if (world.environment().local_rank == 0) drop_page_cache();
  });
  return std::chrono::system_clock::now();
}

MlperfRun describe_mlperf_run(RunConfig& config, World& world, const CacheClear& cleared) {
  Task& task = *config.task;
  const MlperfSection& section = config.mlperf;
  const EvaluationSection& evaluation = config.evaluation;
  MlperfRun run{.org = section.submission_org,
                .platform = section.submission_platform,
                .division = section.submission_division,
                .status = section.submission_status,
                .benchmark = section.submission_benchmark,
                .cache_cleared = cleared.has_value(),
                .began_ms = ms_of(cleared.value_or(kProgramStart)),
                .seed = config.run.seed,
                .batch_size = std::llround(task.items_per_step()),
                .accumulation = task.accumulate(),
                .train_samples = task.train_items(),
                .eval_samples = task.items_of(evaluation.split),
                .epochs_between = epochs_between(evaluation, task.steps_in_epoch(0)),
                .settings = settings_of(config),
                .metric = evaluation.metrics.front()};
  if (run.platform == "auto") run.platform = platform_text(world, task);
  if (run.benchmark == "auto") run.benchmark = task.mlperf_benchmark();
  if (evaluation.limit > 0) run.eval_samples = std::min(run.eval_samples, evaluation.limit);
  for (const MetricKind& kind : task.metrics()) {
    if (kind.name != run.metric) continue;
    run.whole = kind.whole;
    run.higher_is_better = kind.higher_is_better;
  }
  if (section.target > 0) run.target = section.target;
  return run;
}

}  // namespace lockstep
