#include "train/trainer.h"

#include <chrono>
#include <csignal>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "dist/fingerprint.h"
#include "train/event_observer.h"
#include "train/metrics_log.h"
#include "train/progress_line.h"

namespace lockstep {

std::atomic<int> stop_signal{0};

namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Puts the averaged weights in place of the trained ones while it lives.
class UseAverage {
 public:
  UseAverage(Parameters& parameters, const torch::Tensor& average) : parameters_(parameters) {
    if (!average.defined()) return;
    torch::NoGradGuard no_grad;
    trained_ = parameters.values().clone();
    parameters.values().copy_(average);
    parameters.refresh_low();
  }
  ~UseAverage() {
    if (!trained_.defined()) return;
    torch::NoGradGuard no_grad;
    parameters_.values().copy_(trained_);
    parameters_.refresh_low();
  }
  UseAverage(const UseAverage&) = delete;
  UseAverage& operator=(const UseAverage&) = delete;

 private:
  Parameters& parameters_;
  torch::Tensor trained_;
};

}  // namespace

Trainer::Trainer(RunConfig& config, World& world, const RunFolder& folder, bool resume)
    : config_(config), world_(world), folder_(folder), resume_(resume), task_(*config.task) {
  build_network();
  if (resume_) restore();
  check_weights();
  start_observers();
  start_batches();
}

Trainer::~Trainer() = default;

void Trainer::build_network() {
  const LaunchEnvironment& environment = world_.environment();
  TaskContext context;
  context.device =
      choose_device(config_.run.device, environment.local_rank, environment.local_size);
  context.numerics = choose_numerics(config_.run);
  context.seed = static_cast<uint64_t>(config_.run.seed);
  task_.open(context);
  Parameters& parameters = task_.parameters();
  update_ =
      std::make_unique<WeightUpdate>(world_, parameters, *config_.optimizer,
                                     UpdateOptions{.average = config_.training.average_decay > 0,
                                                   .sharded = config_.training.shard_optimizer});
  hook_ = make_comm_hook(world_, config_.comm.hook);
  std::vector<ReducedParameter> reduced;
  for (const ParameterRef& p : parameters.list()) {
    reduced.push_back({p->value, p->offset, p->numel});
  }
  ReducerOptions options;
  options.bucket_bytes = static_cast<int64_t>(config_.comm.bucket_megabytes * 1e6);
  reducer_ = std::make_unique<GradientReducer>(world_, *hook_, std::move(reduced),
                                               parameters.gradients(), options);
  log_info("{} weights ({}), {}, {} rank{} x {} thread{} on {}", with_commas(parameters.count()),
           config_.task_name, config_.run.precision, world_.size(), world_.size() == 1 ? "" : "s",
           at::get_num_threads(), at::get_num_threads() == 1 ? "" : "s", context.device.str());
}

void Trainer::restore() {
  std::string chosen;
  if (world_.is_leader()) {
    std::vector<fs::path> complete = complete_checkpoints(folder_.checkpoints());
    if (!complete.empty()) chosen = complete.front().string();
  }
  chosen = world_.all_gather_strings(chosen).front();  // rank 0 decides for all
  if (chosen.empty()) {
    log_info("no complete checkpoint in {}: starting at the first step",
             folder_.checkpoints().string());
    return;
  }
  CheckpointContent content{.parameters = &task_.parameters(),
                            .average = update_->average(),
                            .optimizer = update_->gather_state()};
  try {
    position_ = load_checkpoint(chosen, content);
  } catch (Error& error) {
    error.add_context("resuming from " + chosen);
    throw;
  }
  update_->set_state(content.optimizer);
  task_.parameters().refresh_low();
  saved_step_ = evaluated_step_ = position_.step;
  log_info("resumed from {}", chosen);
}

void Trainer::start_observers() {
  if (!world_.is_leader()) return;
  task_.save_assets(folder_.path());
  observers_.push_back(std::make_unique<ProgressLine>(config_.training.progress_every,
                                                      config_.training.minutes, task_.unit()));
  observers_.push_back(std::make_unique<MetricsLog>(folder_.metrics()));
  observers_.push_back(std::make_unique<EventObserver>(folder_.events(), config_.to_toml()));
}

void Trainer::start_batches() {
  planned_ = position_;
  batches_ = std::make_unique<Prefetcher<StepBatch>>([this] { return make_step(); });
}

// On the prefetch thread.
StepBatch Trainer::make_step() {
  if (planned_.step_in_epoch == task_.steps_in_epoch(planned_.epoch)) {
    ++planned_.epoch;
    planned_.step_in_epoch = 0;
  }
  int64_t parts = world_.size() * task_.accumulate();
  StepBatch out{.epoch = planned_.epoch,
                .step_in_epoch = planned_.step_in_epoch,
                .targets = task_.targets_in_step(planned_.epoch, planned_.step_in_epoch)};
  for (int64_t part = world_.rank(); part < parts; part += world_.size()) {
    auto batch = task_.make_batch({planned_.epoch, planned_.step_in_epoch, part, parts});
    if (batch) out.micro_batches.push_back(std::move(batch));
  }
  ++planned_.step_in_epoch;
  return out;
}

void Trainer::advance(const StepBatch& batch) {
  ++position_.step;
  position_.epoch = batch.epoch;
  position_.step_in_epoch = batch.step_in_epoch + 1;
  position_.targets_seen += batch.targets;
}

void Trainer::check_weights() {
  world_.check_equal("the weights", fingerprint(task_.parameters().values()));
}

StopWish Trainer::stop_wish(double elapsed_seconds) const {
  double limit = config_.training.minutes * 60;
  return {.out_of_time = world_.is_leader() && limit > 0 && elapsed_seconds >= limit,
          .interrupted = stop_signal.load() != 0};
}

int Trainer::run() {
  Engine engine{task_, world_, *reducer_, *update_, config_};
  for (auto& o : observers_) o->on_start(position_.step + 1, config_.training.steps);
  auto due = [&](int64_t every) { return every > 0 && position_.step % every == 0; };
  Stopwatch run_watch;
  StopWish stop;
  while (!stop.out_of_time && !stop.interrupted && position_.step < config_.training.steps) {
    Stopwatch data_watch;
    StepBatch batch = batches_->next();
    double data_seconds = data_watch.seconds();

    StepOutcome outcome =
        train_step(engine, batch, position_.step + 1, stop_wish(run_watch.seconds()));
    advance(batch);
    stop = outcome.stop;
    outcome.record.data_seconds = data_seconds;
    outcome.record.seconds += data_seconds;
    for (auto& o : observers_) o->on_step(outcome.record);

    if (due(config_.training.check_weights_every)) check_weights();
    if (due(config_.evaluation.every)) evaluate();
    if (due(config_.checkpoint.every)) save();
  }
  if (!stop.interrupted) evaluate();  // a signal leaves time for the checkpoint only
  save();
  check_weights();
  for (auto& o : observers_) o->on_end();
  if (!stop.interrupted) return 0;
  int signal = stop_signal.load();
  return signal != 0 ? signal : SIGTERM;  // another rank was told
}

void Trainer::evaluate() {
  if (evaluated_step_ == position_.step) return;
  evaluated_step_ = position_.step;
  Stopwatch watch;
  Evaluation result;
  {
    update_->gather_average();
    UseAverage use_average(task_.parameters(), update_->average());
    result = task_.evaluate(world_, config_.evaluation.split, config_.evaluation.limit);
  }
  double value = result.metrics.at(result.main_metric);
  bool better =
      !position_.best_metric ||
      (result.higher_is_better ? value > *position_.best_metric : value < *position_.best_metric);
  EvaluationRecord record{.step = position_.step,
                          .epoch = position_.epoch,
                          .seconds = watch.seconds(),
                          .is_best = better,
                          .result = &result};
  for (auto& o : observers_) o->on_evaluation(record);
  if (!better) return;
  position_.best_metric = value;
  position_.best_step = position_.step;
  saved_step_ = -1;  // a checkpoint of this step does not know yet that it is the best
  save();
}

void Trainer::save() {
  if (saved_step_ == position_.step) return;
  saved_step_ = position_.step;
  update_->gather_average();
  OptimizerState optimizer = update_->gather_state();
  if (world_.is_leader()) {
    Stopwatch watch;
    CheckpointContent content{.position = position_,
                              .parameters = &task_.parameters(),
                              .average = update_->average(),
                              .optimizer = std::move(optimizer)};
    int64_t bytes = save_checkpoint(folder_.checkpoints(), content);
    remove_old_checkpoints(folder_.checkpoints(), config_.checkpoint.keep, position_.best_step);
    CheckpointRecord record{.step = position_.step,
                            .seconds = watch.seconds(),
                            .bytes = bytes,
                            .name = checkpoint_name(position_.step)};
    for (auto& o : observers_) o->on_checkpoint(record);
  }
  world_.barrier();  // nobody runs ahead into a timeout while a slow disk is written
}

}  // namespace lockstep
