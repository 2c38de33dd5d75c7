// Starts a run: network, communication, folder, checkpoint, observers, batches.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "dist/collectives/event_clock.h"
#include "dist/collectives/fingerprint.h"
#include "dist/liveness/heartbeat.h"
#include "nn/device_memory.h"
#include "train/checkpoint/initial_weights.h"
#include "train/config/hyper_fields.h"
#include "train/config/precision.h"
#include "train/listeners/epoch_table.h"
#include "train/listeners/event_observer.h"
#include "train/listeners/host_log.h"
#include "train/listeners/imagenet_lines.h"
#include "train/listeners/live_file.h"
#include "train/listeners/metrics_log.h"
#include "train/listeners/plan_check.h"
#include "train/listeners/progress_line.h"
#include "train/listeners/times_file.h"
#include "train/loop/trainer.h"
#include "train/parts/agreement.h"

namespace lockstep {

namespace {

// The log is rank 0's; of other machines only checkpoints tell.
bool took_steps(const RunFolder& folder) {
  std::error_code absent;
  const auto bytes = fs::file_size(folder.metrics(), absent);
  return !absent && bytes > 0;
}

}  // namespace

Trainer::Trainer(RunConfig& config, World& world, const RunFolder& folder,
                 const TrainerOptions& options)
    : config_(config), world_(world), folder_(folder), options_(options), task_(*config.task) {
  check_same_text(world, "the configuration", config.to_toml());
  if (options_.benchmark_steps == 0) caches_cleared_ = clear_caches(config, world);
  if (options_.benchmark_steps == 0) open_folder();
  std::optional<SharedCheckpoint> checkpoint;
  if (options_.resume) checkpoint = choose_checkpoint();
  build_state(checkpoint);
  if (checkpoint) {
    state_->restore(*checkpoint);
    saved_step_ = state_->position.step;
    log_info("resumed from {}{}", checkpoint->path,
             checkpoint->holder == 0 ? "" : fmt::format(" of rank {}", checkpoint->holder));
  }
  Validation& validation = state_->position.validation;
  validation = watch_metrics(validation, config_.evaluation.metrics);
  has_history_ = checkpoint || took_steps(folder_);
  find_place();
  if (!finished_.empty()) return;
  check_weights(false);
  divide_steps(checkpoint ? checkpoint->holder : 0);
  world.heartbeat().stop_news().follow(&stop_signal);
  state_->local.begin(state_->position.step);
  equal_step_ = state_->position.step;
  start_observers();
  start_batches();
}

namespace {

// Returns how many of the parts of a step each rank computes.
int64_t parts_of_each(int64_t shards, int ranks) {
  if (shards % ranks == 0) return shards / ranks;
  throw ConfigError(
      "training.virtual_shards = {}: {} ranks cannot divide them; with training.reproducible = "
      "\"any-ranks\" a run has 1, 2, 4, ... ranks, up to that number",
      shards, ranks);
}

}  // namespace

void Trainer::build_state(const std::optional<SharedCheckpoint>& checkpoint) {
  const LaunchEnvironment& environment = world_.environment();
  const bool fresh = !checkpoint;
  TaskContext context;
  context.world = &world_;
  context.ranks = std::max<int64_t>(world_.size(), options_.benchmark_ranks);
  if (options_.benchmark_steps == 0 && config_.evaluation.is_on()) {
    context.evaluated_split = config_.evaluation.split;
    context.evaluated_metrics = config_.evaluation.metrics;
  }
  context.device = choose_device(config_, environment.local_rank, environment.local_size);
  if (config_.run.device == "auto") check_same_device(world_, context.device);
  if (!context.device.is_cpu()) {
    at::globalContext().setBenchmarkCuDNN(true);  // takes the fastest convolution for each shape
    StepAccount& account = world_.progress().account();
    account.use(std::make_unique<EventClock>(context.device));
    if (options_.bucket_clock != nullptr) options_.bucket_clock->account = &account;
  }
  const std::string precision = agree_on_precision(
      world_, config_.run, folder_, fresh ? std::nullopt : std::optional(checkpoint->holder),
      device_formats(context.device.is_cuda(), environment.local_rank));
  context.numerics = choose_numerics(config_.run);
  context.seed = static_cast<uint64_t>(config_.run.seed);
  if (!fresh) context.resumed_folder = folder_.path();
  // Micro-batches that were found by an earlier process, and saved, say nothing of a step's size.
  const auto size = task_.step_size_keys();
  if (config_.training.fit_memory && size && size->per_rank->is_on()) task_.set_accumulate(1);
  if (config_.training.any_ranks()) {
    check_any_ranks(world_, context.device);
    task_.set_accumulate(parts_of_each(config_.training.virtual_shards, world_.size()));
  }
  together(world_, [&] { task_.open(context); });
  if (config_.training.any_ranks() && task_.parameters().buffers().numel() > 0) {
    throw ConfigError(
        "training.reproducible = \"any-ranks\": the network has running statistics (batch norms), "
        "which differ with the parts that each rank sees");
  }
  check_same_text(world_, "the data", task_.data_identity());
  if (fresh && !config_.run.load_model.empty()) {
    load_initial_weights(config_.run.load_model, task_);
  }
  if (fresh) share_initial_weights();
  make_state(context);
  log_info("{} weights ({}), {}, {} rank{} x {} thread{} on {}",
           with_commas(task_.parameters().count()), config_.task_name, precision, world_.size(),
           world_.size() == 1 ? "" : "s", at::get_num_threads(),
           at::get_num_threads() == 1 ? "" : "s", context.device.str());
}

// The weights have their memory already, as a rule the smaller part of what training takes.
void Trainer::make_state(const TaskContext& context) {
  try {
    state_ = std::make_unique<TrainingState>(config_, task_, world_, context.numerics,
                                             options_.bucket_clock);
  } catch (const std::exception& error) {
    if (!is_lack_of_memory(error)) throw;
    const bool sharded = config_.training.shard_optimizer;
    const auto bytes = [&](int64_t sharers) {
      return bytes_of_update(task_.parameters(), *config_.optimizer,
                             config_.training.average_decay > 0, sharers);
    };
    MachineError out =
        lack_of_memory(error, context.device, "weights, gradients and optimizer of a training",
                       bytes(sharded ? world_.size() : 1));
    std::string advice = "a device with more memory, a smaller model";
    if (world_.size() > 1 && !sharded) {
      advice += fmt::format(", or training.shard_optimizer = true ({} a rank)",
                            short_bytes(static_cast<double>(bytes(world_.size()))));
    }
    out.set_advice(advice);
    throw out;
  }
}

// Makes this machine's run folder. Rank 0's exists already (commands/runs/train.cpp).
void Trainer::open_folder() {
  keeps_folder_ = keeps_checkpoints(world_, folder_, config_.checkpoint.every_machine == "auto");
  if (options_.needs_run) check_run_exists();
  together(world_, [this] {
    if (!keeps_folder_ || world_.is_leader()) return;
    const LaunchEnvironment& environment = world_.environment();
    bool goes_on = options_.resume || folder_.job_id() == environment.run_id;
    if (goes_on) {
      folder_.complete(config_.to_toml(), version_text());
    } else {
      folder_.create(config_.to_toml(), version_text());
    }
    if (!environment.run_id.empty()) folder_.set_job_id(environment.run_id);
    log_info("this machine does not see rank 0's run folder and keeps its own");
  });
}

// Rank 0's machine may be new to the run, in the place of one that was lost.
void Trainer::check_run_exists() {
  const bool mine =
      world_.is_leader() ? options_.found_run : keeps_folder_ && fs::exists(folder_.config());
  const std::vector<std::string> all = world_.all_gather_strings(mine ? "has it" : "");
  if (std::ranges::find(all, "has it") != all.end()) return;
  if (world_.is_leader()) folder_.withdraw();
  throw folder_.nothing_to_resume();
}

// Returns nothing when there is no checkpoint to resume from.
std::optional<SharedCheckpoint> Trainer::choose_checkpoint() {
  std::optional<SharedCheckpoint> chosen = newest_of_all_ranks(world_, folder_, keeps_folder_);
  if (!chosen) {
    log_info("no complete checkpoint in {}: starting at the first step",
             folder_.checkpoints().string());
  }
  return chosen;
}

void Trainer::start_observers() {
  if (keeps_folder_) task_.save_assets(folder_.path());
  if (options_.benchmark_steps == 0) {
    windows_ = std::make_unique<TraceWindows>(world_, folder_.trace(), config_.trace,
                                              state_->position.step);
  }
  if (!world_.is_leader()) return;
  const std::string style = config_.log_style();
  if (style == "imagenet") {
    observers_.push_back(
        std::make_unique<ImagenetLines>(config_.training.progress_every, config_.evaluation.split));
  } else {
    observers_.push_back(std::make_unique<ProgressLine>(config_.training.progress_every,
                                                        config_.training.minutes, task_.unit()));
  }
  if (options_.benchmark_steps > 0) return;
  auto log =
      std::make_unique<MetricsLog>(folder_.metrics(), task_.parameters().values().device().str());
  if (step_size_.step.size > 0) log->set_step_size(to_json(step_size_));
  if (auto plan = find_plan(config_.run.plan, folder_.path())) {
    observers_.push_back(std::make_unique<PlanObserver>(*plan, world_.size(), *log));
  }
  std::vector<std::string> metrics;
  for (const MetricKind& kind : task_.metrics()) metrics.push_back(kind.name);
  auto epochs = std::make_unique<EpochTable>(folder_.epochs(), std::move(metrics), *log);
  if (config_.logging.histograms_every > 0) {
    histograms_ =
        std::make_unique<WeightHistograms>(task_.parameters(), config_.logging.histograms_every);
    state_->histograms = histograms_.get();
  }
  auto events = std::make_unique<EventObserver>(folder_.events(),
                                                EventContent{.config = config_.to_toml(),
                                                             .style = style,
                                                             .hyper = hyper_parameters(config_),
                                                             .histograms = histograms_.get()});
  observers_.push_back(std::move(epochs));  // before the log, whose last line is the run's end
  if (const double seconds = config_.monitor.every_seconds; seconds > 0) {
    HostLog::Logs logs{*log, *events};
    observers_.push_back(std::make_unique<HostLog>(world_, logs, seconds));
  }
  MetricsLog& lines = *log;
  observers_.push_back(std::move(log));
  observers_.push_back(std::move(events));
  if (config_.logging.mlperf) {
    observers_.push_back(std::make_unique<MlperfLog>(
        folder_.path(), describe_mlperf_run(config_, world_, caches_cleared_)));
  }
  observers_.push_back(std::make_unique<TimesFile>(folder_.times(), world_.size()));
  observers_.push_back(
      std::make_unique<LiveFile>(world_, folder_, lines,
                                 LiveOptions{.unit = task_.unit(),
                                             .minutes = config_.training.minutes,
                                             .threads = at::get_num_threads(),
                                             .look = [this] { windows_->look(); }}));
}

// Finds where in the epoch the run is, and whether it is over. All ranks find the same.
void Trainer::find_place() {
  RunPosition& position = state_->position;
  const TrainingSection& training = config_.training;
  const std::optional<BatchSize> before =
      continue_epoch(task_, config_.schedule, training.epochs, position);
  const int64_t steps = task_.steps_in_epoch(position.epoch);
  const int64_t usual = position.done.empty() ? steps : task_.steps_in_epoch(position.epoch + 1);
  state_->epoch_done = position.step_in_epoch == steps;
  state_->total_steps =
      training.steps > 0 ? training.steps : training.epochs * usual - position.schedule_shift;
  tell_step_size(before, usual);
  const bool evaluated = !config_.evaluation.is_on() || position.evaluated_step == position.step;
  if (!options_.stop_if_finished || position.step == 0 || !evaluated) return;
  const std::string reason = end_reason({});
  if (!reason.empty()) finished_ = fmt::format("{} at step {}", reason, with_commas(position.step));
}

// Says how large a step is; `before`: it was another size in an earlier process.
void Trainer::tell_step_size(const std::optional<BatchSize>& before, int64_t steps_in_epoch) {
  step_size_ = {.step = task_.step_size(),
                .ranks = std::max<int64_t>(world_.size(), options_.benchmark_ranks),
                .micro_batches = task_.accumulate(),
                .updates_an_epoch = steps_in_epoch,
                .lr = config_.optimizer->lr(),
                .before = before};
  if (step_size_.step.size == 0) return;
  if (const auto keys = task_.step_size_keys()) step_size_.per_rank = keys->per_rank->per_rank;
  log_info("{}", step_size_text(step_size_));
  if (before) log_warning("{}", changed_size_text(step_size_, state_->position));
}

// `holder`: the rank whose run folder says how the run was divided.
void Trainer::divide_steps(int holder) {
  const bool records = options_.benchmark_steps == 0;
  const int64_t ranks = std::max<int64_t>(world_.size(), options_.benchmark_ranks);
  sharing_ = std::make_unique<StepSharing>(
      config_, world_, state_->reducer,
      StepSharing::Place{folder_, records && keeps_folder_, holder, records}, ranks);
  sharing_->begin(state_->position);
  if (config_.training.fit_memory) {
    state_->tensor_limit_bytes = static_cast<int64_t>(config_.training.fit_megabytes * 1e6);
  }
}

// Begins with the batch that follows the run's position.
void Trainer::start_batches() {
  batches_.reset();  // its thread ends before another one makes batches
  StepMaker maker(task_, world_, state_->position, sharing_->timeline(), leave_,
                  config_.training.any_ranks());
  batches_ = std::make_unique<Prefetcher<StepBatch>>([maker]() mutable { return maker.next(); },
                                                     kStepsPrefetched, is_lack_of_memory);
}

}  // namespace lockstep
