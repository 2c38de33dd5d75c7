#include "train/trainer.h"

#include <chrono>
#include <csignal>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "dist/fingerprint.h"
#include "train/event_observer.h"
#include "train/initial_weights.h"
#include "train/memory_fit.h"
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

Trainer::Trainer(RunConfig& config, World& world, const RunFolder& folder,
                 const TrainerOptions& options)
    : config_(config), world_(world), folder_(folder), options_(options), task_(*config.task) {
  std::string checkpoint = options_.resume ? choose_checkpoint() : "";
  build_network(checkpoint.empty());
  if (!checkpoint.empty()) restore(checkpoint);
  position_.validation = watch_metrics(position_.validation, config_.evaluation.metrics);
  check_weights();
  if (config_.training.fit_memory) {
    fit_to_memory(task_, world_, *reducer_, config_.training.fit_megabytes * 1e6);
  }
  start_observers();
  start_batches();
}

Trainer::~Trainer() = default;

void Trainer::add_observer(std::unique_ptr<Observer> observer) {
  observers_.push_back(std::move(observer));
}

void Trainer::build_network(bool fresh) {
  const LaunchEnvironment& environment = world_.environment();
  TaskContext context;
  context.device =
      choose_device(config_.run.device, environment.local_rank, environment.local_size);
  context.numerics = choose_numerics(config_.run);
  context.seed = static_cast<uint64_t>(config_.run.seed);
  task_.open(context);
  if (fresh && !config_.run.load_model.empty()) {
    load_initial_weights(config_.run.load_model, task_.parameters());
  }
  frozen_ = FrozenWeights(task_.parameters(), config_.training.freeze);
  Parameters& parameters = task_.parameters();
  update_ =
      std::make_unique<WeightUpdate>(world_, parameters, *config_.optimizer,
                                     UpdateOptions{.average = config_.training.average_decay > 0,
                                                   .sharded = config_.training.shard_optimizer});
  guard_ = std::make_unique<StepGuard>(context.numerics, config_.loss_scale,
                                       config_.training.divergence);
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

// Empty when there is none to go on from. Rank 0 decides for all.
std::string Trainer::choose_checkpoint() {
  std::string chosen;
  if (world_.is_leader()) {
    std::vector<fs::path> complete = complete_checkpoints(folder_.checkpoints());
    if (!complete.empty()) chosen = complete.front().string();
  }
  chosen = world_.all_gather_strings(chosen).front();
  if (chosen.empty()) {
    log_info("no complete checkpoint in {}: starting at the first step",
             folder_.checkpoints().string());
  }
  return chosen;
}

void Trainer::restore(const std::string& checkpoint) {
  CheckpointContent content{.parameters = &task_.parameters(),
                            .average = update_->average(),
                            .optimizer = update_->gather_state()};
  try {
    position_ = load_checkpoint(checkpoint, content);
  } catch (Error& error) {
    error.add_context("resuming from " + checkpoint);
    throw;
  }
  update_->set_state(content.optimizer);
  guard_->set_state(content.guard);
  task_.parameters().refresh_low();
  frozen_.remember();
  saved_step_ = position_.step;
  log_info("resumed from {}", checkpoint);
}

void Trainer::start_observers() {
  if (!world_.is_leader()) return;
  observers_.push_back(std::make_unique<ProgressLine>(config_.training.progress_every,
                                                      config_.training.minutes, task_.unit()));
  if (options_.benchmark_steps > 0) return;
  task_.save_assets(folder_.path());
  observers_.push_back(std::make_unique<MetricsLog>(folder_.metrics()));
  observers_.push_back(std::make_unique<EventObserver>(folder_.events(), config_.to_toml()));
}

void Trainer::start_batches() {
  int64_t steps = task_.steps_in_epoch(position_.epoch);
  epoch_done_ = position_.step_in_epoch == steps;
  total_steps_ =
      config_.training.steps > 0 ? config_.training.steps : config_.training.epochs * steps;
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
  out.ends_epoch = planned_.step_in_epoch == task_.steps_in_epoch(planned_.epoch);
  return out;
}

void Trainer::advance(const StepBatch& batch, bool updated) {
  if (updated) ++position_.step;
  position_.epoch = batch.epoch;
  position_.step_in_epoch = batch.step_in_epoch + 1;
  position_.targets_seen += batch.targets;
  epoch_done_ = batch.ends_epoch;
}

void Trainer::check_weights() {
  world_.check_equal("the weights", fingerprint(task_.parameters().values()));
}

StopWish Trainer::stop_wish(double elapsed_seconds) const {
  double limit = config_.training.minutes * 60;
  return {.out_of_time = world_.is_leader() && limit > 0 && elapsed_seconds >= limit,
          .interrupted = stop_signal.load() != 0};
}

std::string Trainer::end_reason(const StopWish& stop) const {
  const TrainingSection& training = config_.training;
  if (stop.interrupted) return "signal";
  if (options_.benchmark_steps > 0) {
    return position_.step >= options_.benchmark_steps ? "steps" : "";
  }
  if (training.steps > 0 && position_.step >= training.steps) return "steps";
  int64_t epochs_done = position_.epoch + (epoch_done_ ? 1 : 0);
  if (training.epochs > 0 && epochs_done >= training.epochs) return "epochs";
  if (patience_is_over(position_.validation, config_.validation_rules())) return "patience";
  return stop.out_of_time ? "minutes" : "";
}

int Trainer::run() {
  Engine engine{task_, world_, *reducer_, *update_, frozen_, *guard_, config_, total_steps_};
  for (auto& o : observers_) o->on_start(position_.step + 1, total_steps_);
  bool writes = options_.benchmark_steps == 0;
  auto due = [&](int64_t every) { return writes && every > 0 && position_.step % every == 0; };
  Stopwatch run_watch;
  // A signal may have come between a step and its evaluation.
  if (position_.step > 0 && due(config_.evaluation.every)) evaluate();
  std::string reason = end_reason({});
  while (reason.empty()) {
    Stopwatch data_watch;
    StepBatch batch = batches_->next();
    double data_seconds = data_watch.seconds();

    StepOutcome outcome =
        train_step(engine, batch, position_.step + 1, stop_wish(run_watch.seconds()));
    advance(batch, outcome.updated);
    if (!outcome.updated) {
      reason = end_reason(outcome.stop);
      continue;
    }
    outcome.record.data_seconds = data_seconds;
    outcome.record.seconds += data_seconds;
    for (auto& o : observers_) o->on_step(outcome.record);

    if (due(config_.training.check_weights_every)) check_weights();
    // A signal leaves time for the checkpoint only.
    if (!outcome.stop.interrupted && due(config_.evaluation.every)) evaluate();
    if (due(config_.checkpoint.every)) save();
    reason = end_reason(outcome.stop);
  }
  if (writes) {
    if (reason != "signal" && config_.evaluation.every > 0) evaluate();
    save();
    check_weights();
  }
  for (auto& o : observers_) o->on_end(reason);
  if (reason == "patience") {
    log_info("no improvement in {} evaluations: {}", config_.evaluation.patience,
             best_text(position_.validation));
  }
  if (reason != "signal") return 0;
  int signal = stop_signal.load();
  return signal != 0 ? signal : SIGTERM;  // another rank was told
}

void Trainer::evaluate() {
  if (position_.evaluated_step == position_.step) return;
  position_.evaluated_step = position_.step;
  const EvaluationSection& section = config_.evaluation;
  Stopwatch watch;
  Evaluation result;
  {
    update_->gather_average();
    UseAverage use_average(task_.parameters(), update_->average());
    result = task_.evaluate(world_, {.split = section.split,
                                     .limit = section.limit,
                                     .metrics = section.metrics,
                                     .samples = section.samples});
  }
  Verdict verdict = note_evaluation(position_.validation, position_.step, result, task_.metrics(),
                                    config_.validation_rules());
  EvaluationRecord record{.step = position_.step,
                          .epoch = position_.epoch,
                          .seconds = watch.seconds(),
                          .improved = verdict.improved,
                          .result = &result};
  for (auto& o : observers_) o->on_evaluation(record);
  saved_step_ = -1;  // a checkpoint of this step does not know this evaluation yet
  if (verdict.among_best) save();
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
                              .optimizer = std::move(optimizer),
                              .guard = guard_->state()};
    int64_t bytes = save_checkpoint(folder_.checkpoints(), content);
    remove_old_checkpoints(folder_.checkpoints(), config_.checkpoint.keep,
                           best_steps(position_.validation));
    CheckpointRecord record{.step = position_.step,
                            .seconds = watch.seconds(),
                            .bytes = bytes,
                            .name = checkpoint_name(position_.step)};
    for (auto& o : observers_) o->on_checkpoint(record);
  }
  world_.barrier();  // nobody runs ahead into a timeout while a slow disk is written
}

}  // namespace lockstep
