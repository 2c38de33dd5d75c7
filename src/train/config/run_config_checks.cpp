#include "train/config/run_config_checks.h"

#include <bit>
#include <regex>

#include "base/error.h"
#include "base/text.h"
#include "data/store/object_store.h"

namespace lockstep {

namespace {

void check_comm(const RunConfig& config, ConfigSource& source) {
  const LocalStepsConfig& local = config.comm.local;
  const std::string hooks = config.comm.hooks.check();
  if (!hooks.empty()) source.add_error("comm.hook", hooks);
  const std::string steps = local.check();
  if (!steps.empty()) source.add_error("comm.overlap_steps", steps);
  if (local.is_on() && config.task->computes_together()) {
    source.add_error("comm.strategy",
                     fmt::format("{} has groups that compute by themselves, but with "
                                 "model.sync_batch_norm all ranks compute together",
                                 local.strategy));
  }
  if (local.is_on() && config.training.shard_optimizer) {
    source.add_error(
        "training.shard_optimizer",
        fmt::format("shares of the weights are fetched from the other ranks each step, "
                    "which {} does without: set comm.strategy=every_step, or no shards",
                    local.strategy));
  }
}

// Of the keys that say how large a step is, one counts: that of a later source, or the only one.
void check_step_size(RunConfig& config, ConfigSource& source) {
  const std::optional<StepSizeKeys> keys = config.task->step_size_keys();
  if (!keys) return;
  const std::string per_rank = "batch.per_rank";
  int64_t* of_rank = &keys->per_rank->per_rank;
  std::vector<std::string> names;
  bool any = *of_rank > 0;
  for (const StepSizeKeys::Whole& whole : keys->whole) {
    const std::string key = "batch." + whole.name;
    names.push_back(key);
    if (*of_rank > 0 && *whole.value > 0) {
      if (!source.has(key) || source.overrides(per_rank, key)) {
        *whole.value = 0;
      } else if (source.overrides(key, per_rank)) {
        *of_rank = 0;
      } else {
        source.add_error(per_rank,
                         fmt::format("{} a rank's micro-batch, but {} = {} counts the whole step: "
                                     "set one of them to 0",
                                     *of_rank, key, *whole.value));
      }
    }
    any = any || *whole.value > 0;
  }
  if (!any) {
    source.add_error(names.front(), fmt::format("0: set {} or {}", join(names, ", "), per_rank));
  }
}

void check_shares(const RunConfig& config, ConfigSource& source) {
  const SharesConfig* shares = config.task->shares();
  if (shares == nullptr) return;
  const std::string wrong = shares->check();
  if (!wrong.empty()) source.add_error("batch.shares", wrong);
  if (!wrong.empty() || shares->shares == "equal") return;
  std::string why = config.task->equal_shares_only();
  if (why.empty() && config.comm.local.is_on()) {
    why = fmt::format(
        "with comm.strategy={} groups of ranks take steps by themselves, which weigh "
        "the same",
        config.comm.local.strategy);
  }
  if (!why.empty()) {
    source.add_error("batch.shares",
                     fmt::format("\"{}\": {}; expected equal", shares->shares, why));
  }
}

// Shares and local steps weigh ranks by their targets.
void check_gradient_mean(const RunConfig& config, ConfigSource& source) {
  if (config.training.gradient_mean != "ranks") return;
  const SharesConfig* shares = config.task->shares();
  std::string why;
  if (shares != nullptr && shares->shares != "equal") {
    why = fmt::format("with batch.shares=\"{}\" the targets of a small share would weigh more",
                      shares->shares);
  } else if (config.comm.local.is_on()) {
    why = fmt::format("comm.strategy={} weighs ranks by their targets", config.comm.local.strategy);
  }
  if (!why.empty()) {
    source.add_error("training.gradient_mean", fmt::format("\"ranks\": {}; expected targets", why));
  }
}

void check_expressions(const std::string& key, const std::vector<std::string>& expressions,
                       ConfigSource& source) {
  for (const std::string& expression : expressions) {
    try {
      std::regex compiled(expression);
    } catch (const std::regex_error& error) {
      source.add_error(
          key, fmt::format("\"{}\" is no regular expression: {}", expression, error.what()));
    }
  }
}

void check_mlperf(const RunConfig& config, ConfigSource& source) {
  if (!config.logging.mlperf) return;
  if (!config.evaluation.is_on()) {
    source.add_error("logging.mlperf", "without evaluations: evaluation.every is 0");
  }
  auto check = [&](const char* key, const std::string& value) {
    if (value.empty()) source.add_error(std::string("mlperf.") + key, "empty; expected a name");
  };
  check("submission_org", config.mlperf.submission_org);
  check("submission_platform", config.mlperf.submission_platform);
  check("submission_benchmark", config.mlperf.submission_benchmark);
}

// Checks what concerns several keys, or what a single field cannot check.
void check_together(RunConfig& config, ConfigSource& source) {
  TrainingSection& training = config.training;
  if (training.epochs > 0 && !source.has("training.steps")) training.steps = 0;
  if (training.epochs > 0 && training.steps > 0) {
    source.add_error("training.epochs",
                     fmt::format("the run would end after {} epochs or {} steps: set "
                                 "training.steps=0 or training.epochs=0",
                                 training.epochs, training.steps));
  } else if (training.epochs == 0 && training.steps == 0) {
    source.add_error("training.steps", "0 steps and 0 epochs: set one of them");
  }
  if (config.evaluation.every_epochs > 0 && !source.has("evaluation.every")) {
    config.evaluation.every = 0;
  }
  if (config.evaluation.metrics.empty()) {
    source.add_error("evaluation.metrics",
                     fmt::format("empty; expected at least one of {}",
                                 join(config.evaluation.known_metrics, ", ")));
  }
  if (config.evaluation.patience > 0 && !config.evaluation.is_on()) {
    source.add_error("evaluation.patience", "without evaluations: evaluation.every is 0");
  }
  check_mlperf(config, source);
  if (!config.checkpoint.mirror.empty()) {
    try {
      parse_store_address(config.checkpoint.mirror);
    } catch (const ConfigError& error) {
      source.add_error("checkpoint.mirror", error.what());
    }
  }
  if (config.guard.rolls_back() && config.comm.local.is_on()) {
    source.add_error("guard",
                     "\"roll_back\" needs ranks that take every step together, without "
                     "comm.strategy");
  }
  check_expressions("training.freeze", training.freeze, source);
  check_expressions("training.no_decay", training.no_decay, source);
}

// Checks what would let the number of ranks change a bit.
void check_reproducible(const RunConfig& config, ConfigSource& source) {
  const TrainingSection& training = config.training;
  if (!training.any_ranks()) return;
  const auto refuse = [&](bool wrong, const char* key, const char* why) {
    if (wrong)
      source.add_error(key, fmt::format("with training.reproducible = \"any-ranks\" {}", why));
  };
  const auto shards = static_cast<uint64_t>(training.virtual_shards);
  refuse(!std::has_single_bit(shards), "training.virtual_shards", "a power of two is expected");
  refuse(config.task->accumulate() != 1, "batch.accumulate",
         "training.virtual_shards says how many micro-batches there are");
  refuse(config.task->step_size_keys() && config.task->step_size_keys()->per_rank->is_on(),
         "batch.per_rank", "the size of a step must not depend on the ranks");
  refuse(config.task->shares() != nullptr && config.task->shares()->shares != "equal",
         "batch.shares", "all ranks have equal shares");
  refuse(config.task->computes_together(), "training.reproducible",
         "ranks exchange nothing within a pass (images.sync_batch_norm)");
  refuse(training.fit_memory, "training.fit_memory", "micro-batches are given");
  refuse(training.gradient_mean != "targets", "training.gradient_mean", "it is \"targets\"");
  refuse(config.comm.hooks.hook != "none", "comm.hook", "gradients are exchanged as they are");
  refuse(config.comm.local.is_on(), "comm.strategy", "ranks take every step together");
}

}  // namespace

void check_run_config(RunConfig& config, ConfigSource& source) {
  check_together(config, source);
  check_comm(config, source);
  check_gradient_mean(config, source);
  check_step_size(config, source);
  check_shares(config, source);
  if (config.logging.style == "imagenet" && !config.task->counts_top5()) {
    source.add_error("logging.style", fmt::format("\"imagenet\" shows Acc@5, which the task {} "
                                                  "does not count",
                                                  config.task_name));
  }
  check_optimization(config, source);
  check_reproducible(config, source);
}

}  // namespace lockstep
