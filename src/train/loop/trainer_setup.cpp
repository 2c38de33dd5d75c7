// How a run begins: network, communication, folder, checkpoint, observers, batches.
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "dist/collectives/fingerprint.h"
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
#include "train/parts/memory_fit.h"

namespace lockstep {

Trainer::Trainer(RunConfig& config, World& world, const RunFolder& folder,
                 const TrainerOptions& options)
    : config_(config), world_(world), folder_(folder), options_(options), task_(*config.task) {
  check_same_text(world, "the configuration", config.to_toml());
  if (options_.benchmark_steps == 0) caches_cleared_ = clear_caches(config, world);
  if (options_.benchmark_steps == 0) open_folder();
  std::optional<SharedCheckpoint> checkpoint;
  if (options_.resume) checkpoint = choose_checkpoint();
  build_network(checkpoint);
  if (checkpoint) restore(*checkpoint);
  position_.validation = watch_metrics(position_.validation, config_.evaluation.metrics);
  check_weights();
  if (config_.training.fit_memory) {
    fit_to_memory(task_, world_, *reducer_, config_.training.fit_megabytes * 1e6);
  }
  local_->begin(position_.step);
  equal_step_ = position_.step;
  start_observers();
  start_batches();
}

void Trainer::build_network(const std::optional<SharedCheckpoint>& checkpoint) {
  const LaunchEnvironment& environment = world_.environment();
  const bool fresh = !checkpoint;
  TaskContext context;
  context.world = &world_;
  if (options_.benchmark_steps == 0 && config_.evaluation.is_on()) {
    context.evaluated_split = config_.evaluation.split;
    context.evaluated_metrics = config_.evaluation.metrics;
  }
  context.device =
      choose_device(config_.run.device, environment.local_rank, environment.local_size);
  const std::string precision = agree_on_precision(
      world_, config_.run, folder_, fresh ? std::nullopt : std::optional(checkpoint->holder),
      device_formats(context.device.is_cuda(), environment.local_rank));
  context.numerics = choose_numerics(config_.run);
  context.seed = static_cast<uint64_t>(config_.run.seed);
  if (!fresh) context.resumed_folder = folder_.path();
  together(world_, [&] { task_.open(context); });
  check_same_text(world_, "the data", task_.data_identity());
  if (fresh && !config_.run.load_model.empty()) {
    load_initial_weights(config_.run.load_model, task_);
  }
  statistics_ = std::make_unique<RunningStatistics>(world_, task_.parameters(),
                                                    config_.training.average_decay > 0);
  frozen_ = FrozenWeights(task_.parameters(), config_.training.freeze);
  Parameters& parameters = task_.parameters();
  update_ =
      std::make_unique<WeightUpdate>(world_, parameters, *config_.optimizer,
                                     UpdateOptions{.average = config_.training.average_decay > 0,
                                                   .sharded = config_.training.shard_optimizer,
                                                   .decay_vectors = config_.training.decay_vectors,
                                                   .no_decay = config_.training.no_decay});
  guard_ = std::make_unique<StepGuard>(context.numerics, config_.loss_scale,
                                       config_.training.divergence);
  build_communication();
  log_info("{} weights ({}), {}, {} rank{} x {} thread{} on {}", with_commas(parameters.count()),
           config_.task_name, precision, world_.size(), world_.size() == 1 ? "" : "s",
           at::get_num_threads(), at::get_num_threads() == 1 ? "" : "s", context.device.str());
}

void Trainer::build_communication() {
  Parameters& parameters = task_.parameters();
  const CommSection& comm = config_.comm;
  std::vector<ReducedParameter> reduced;
  for (const ParameterRef& p : parameters.list()) {
    reduced.push_back({p->value, p->offset, p->numel});
  }
  ReducerOptions options;
  options.bucket_bytes = static_cast<int64_t>(comm.bucket_megabytes * 1e6);
  options.whole_parameters = comm.hooks.needs_whole_parameters();
  auto hook = make_comm_hook(world_, comm.hooks, gradient_shapes(parameters));
  if (options_.bucket_clock != nullptr) {
    hook = time_buckets(std::move(hook), *options_.bucket_clock);
    options.even_alone = true;
  }
  hook_ = std::make_unique<ReachHook>(world_, std::move(hook));
  reducer_ = std::make_unique<GradientReducer>(world_, *hook_, std::move(reduced),
                                               parameters.gradients(), options);
  local_ = std::make_unique<LocalSteps>(
      LocalSteps::Parts{world_, parameters, frozen_, update_->average()}, comm.local, comm.hooks,
      options.bucket_bytes);
}

// Rank 0's is there already (commands/train.cpp).
void Trainer::open_folder() {
  keeps_folder_ = keeps_checkpoints(world_, folder_, config_.checkpoint.every_machine == "auto");
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

// Nothing when there is none to go on from.
std::optional<SharedCheckpoint> Trainer::choose_checkpoint() {
  std::optional<SharedCheckpoint> chosen = newest_of_all_ranks(world_, folder_, keeps_folder_);
  if (!chosen) {
    log_info("no complete checkpoint in {}: starting at the first step",
             folder_.checkpoints().string());
  }
  return chosen;
}

void Trainer::restore(const SharedCheckpoint& checkpoint) {
  CheckpointContent content{.parameters = &task_.parameters(),
                            .average = update_->average(),
                            .buffers = statistics_->now(),
                            .average_buffers = statistics_->average(),
                            .optimizer = update_->gather_state(),
                            .outer = local_->outer_state()};
  try {
    position_ = load_from_holder(world_, checkpoint, content);
  } catch (Error& error) {
    error.add_context("resuming from " + checkpoint.path);
    throw;
  }
  update_->set_state(content.optimizer);
  guard_->set_state(content.guard);
  task_.parameters().refresh_low();
  frozen_.remember();
  restore_rank_states(rank_parts(), {checkpoint.path, checkpoint.holder}, position_.step);
  saved_step_ = position_.step;
  log_info("resumed from {}{}", checkpoint.path,
           checkpoint.holder == 0 ? "" : fmt::format(" of rank {}", checkpoint.holder));
}

void Trainer::start_observers() {
  if (keeps_folder_) task_.save_assets(folder_.path());
  if (options_.benchmark_steps == 0) {
    windows_ =
        std::make_unique<TraceWindows>(world_, folder_.trace(), config_.trace, position_.step);
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
  auto log = std::make_unique<MetricsLog>(folder_.metrics());
  if (auto plan = find_plan(config_.run.plan, folder_.path())) {
    observers_.push_back(std::make_unique<PlanObserver>(*plan, world_.size(), *log));
  }
  std::vector<std::string> metrics;
  for (const MetricKind& kind : task_.metrics()) metrics.push_back(kind.name);
  auto epochs = std::make_unique<EpochTable>(folder_.epochs(), std::move(metrics), *log);
  if (config_.logging.histograms_every > 0) {
    histograms_ =
        std::make_unique<WeightHistograms>(task_.parameters(), config_.logging.histograms_every);
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

void Trainer::start_batches() {
  int64_t steps = task_.steps_in_epoch(position_.epoch);
  epoch_done_ = position_.step_in_epoch == steps;
  total_steps_ =
      config_.training.steps > 0 ? config_.training.steps : config_.training.epochs * steps;
  planned_ = position_;
  batches_ = std::make_unique<Prefetcher<StepBatch>>([this] { return make_step(); });
}

}  // namespace lockstep
