#include "train/loop/trainer.h"

#include <chrono>
#include <csignal>
#include <span>

#include "base/log.h"
#include "base/text.h"
#include "dist/account/progress.h"
#include "dist/liveness/heartbeat.h"
#include "dist/rank/launcher_report.h"
#include "train/records/rank_times.h"

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

// While it exists, replaces the trained weights by the averaged ones, where there are some, and
// this rank's statistics by those of all ranks.
class UseForEvaluation {
 public:
  UseForEvaluation(Parameters& parameters, const torch::Tensor& average,
                   const torch::Tensor& statistics)
      : parameters_(parameters) {
    torch::NoGradGuard no_grad;
    if (!statistics.is_same(parameters.buffers())) {
      own_ = parameters.buffers().clone();
      torch::Tensor(parameters.buffers()).copy_(statistics);
    }
    if (!average.defined()) return;
    trained_ = parameters.values().clone();
    parameters.values().copy_(average);
    parameters.refresh_low();
  }
  ~UseForEvaluation() {
    torch::NoGradGuard no_grad;
    if (own_.defined()) torch::Tensor(parameters_.buffers()).copy_(own_);
    if (!trained_.defined()) return;
    parameters_.values().copy_(trained_);
    parameters_.refresh_low();
  }
  UseForEvaluation(const UseForEvaluation&) = delete;
  UseForEvaluation& operator=(const UseForEvaluation&) = delete;

 private:
  Parameters& parameters_;
  torch::Tensor trained_, own_;
};

// Returns whether every rank that writes checkpoints holds that of `step`. Collective.
bool all_hold(World& world, const RunFolder& folder, int64_t step, bool writes) {
  const fs::path done = folder.checkpoints() / checkpoint_name(step) / "DONE";
  double lacks = writes && !fs::exists(done) ? 1 : 0;
  world.all_reduce_sum(std::span<double>(&lacks, 1));
  return lacks == 0;
}

}  // namespace

Trainer::~Trainer() = default;

void Trainer::add_observer(std::unique_ptr<Observer> observer) {
  observers_.push_back(std::move(observer));
}

// Returns whether this rank or another was asked to stop. Safe to call from any thread.
bool Trainer::stop_asked() {
  if (int signal = stop_signal.load(); signal != 0 && !stop_told_.exchange(true)) {
    tell_launcher(fmt::format("told {}", signal));
  }
  return world_.heartbeat().stop_news().asked();
}

// Where all ranks meet anyway: what one knows, all know. Collective.
void Trainer::agree_on_stop() {
  double asked = stop_asked() ? 1 : 0;
  world_.all_reduce_sum(std::span<double>(&asked, 1));
  stopping_ = stopping_ || asked > 0;
}

// Groups that count steps on their own must all come to the same one, and so wait for their data.
std::optional<StepBatch> Trainer::next_batch() {
  const bool waits = state_->local.is_local(state_->position.step + 1);
  std::optional<StepBatch> batch = batches_->next_unless([&] { return !waits && stop_asked(); });
  if (!batch) {
    waiting_batches_ = batches_.release();
    leave_->take();
  }
  return batch;
}

StopWish Trainer::stop_wish(double elapsed_seconds) {
  double limit = config_.training.minutes * 60;
  return {.out_of_time = world_.is_leader() && limit > 0 && elapsed_seconds >= limit,
          .interrupted = stop_asked(),
          .trace_steps = windows_ ? windows_->wish() : 0};
}

std::string Trainer::end_reason(const StopWish& stop) const {
  const TrainingSection& training = config_.training;
  if (stop.interrupted || stopping_) return "signal";
  if (options_.benchmark_steps > 0) {
    return state_->position.step >= options_.benchmark_steps ? "steps" : "";
  }
  if (training.steps > 0 && state_->position.step >= training.steps) return "steps";
  int64_t epochs_done = state_->position.epoch + (state_->epoch_done ? 1 : 0);
  if (training.epochs > 0 && epochs_done >= training.epochs) return "epochs";
  if (patience_is_over(state_->position.validation, config_.validation_rules())) return "patience";
  return stop.out_of_time ? "minutes" : "";
}

// Returns whether a multiple of `every` was passed since all ranks last had the same weights; with
// local steps the last step itself need not be that multiple.
bool Trainer::is_due(int64_t every) const {
  return options_.benchmark_steps == 0 && every > 0 &&
         state_->position.step / every > equal_step_ / every;
}

bool Trainer::is_any_due() const {
  return is_due(config_.training.check_weights_every) || is_due(config_.evaluation.every) ||
         is_due(config_.checkpoint.every) || ends_evaluated_epoch();
}

// Returns whether the last step ended an epoch that an evaluation follows.
bool Trainer::ends_evaluated_epoch() const {
  const int64_t every = config_.evaluation.every_epochs;
  return options_.benchmark_steps == 0 && every > 0 && state_->epoch_done &&
         (state_->position.epoch + 1) % every == 0;
}

// Call this after a step that counts: the groups of local steps meet when it is time. Returns
// whether all ranks have the same weights.
bool Trainer::meet(StepOutcome& outcome) {
  const bool last = !end_reason({}).empty();
  const bool equal =
      state_->local.after_step(outcome.left, {.last = last, .due = is_any_due()}, outcome.stop);
  const std::optional<MeetingRecord>& meeting = state_->local.meeting();
  if (outcome.updated) {
    if (meeting) outcome.record.seconds += meeting->seconds;
    if (meeting) outcome.record.wait_seconds += meeting->seconds;
    world_.progress().end_step({.steps = 1,
                                .targets = outcome.record.targets,
                                .compute_seconds = outcome.record.compute_seconds,
                                .wait_seconds = outcome.record.wait_seconds,
                                .data_seconds = outcome.record.data_seconds});
    for (auto& o : observers_) o->on_step(outcome.record);
    if (world_.is_leader() && !first_told_) {
      first_told_ = true;
      tell_launcher(fmt::format("first_step {}", state_->position.step));
    }
  }
  if (meeting) {
    for (auto& o : observers_) o->on_meeting(*meeting);
    if (equal && state_->local.is_local(state_->position.step)) agree_on_stop();
  }
  return equal;
}

// Checks, evaluates and saves weights when due. REQUIRES equal weights on all ranks.
void Trainer::look_after_weights(const StopWish& stop) {
  if (is_due(config_.training.check_weights_every)) check_weights(true);
  const bool evaluates = is_due(config_.evaluation.every) || ends_evaluated_epoch();
  // Before the evaluation, which may take long.
  if (is_due(config_.checkpoint.every)) save(Saving::kBeside);
  // After a signal there is only time for the checkpoint.
  if (!stop.interrupted && !stopping_ && evaluates) evaluate();
  equal_step_ = state_->position.step;
  if (windows_) windows_->after_step(state_->position.step, stop.trace_steps);
}

// Tells observers the times, by rank, of the step before the one under way.
void Trainer::tell_times(const std::vector<RankTimes>& ranks) {
  const AccountedStep& step = world_.progress().account().ended();
  if (observers_.empty() || step.step <= told_step_) return;  // told already, for a repeated step
  told_step_ = step.step;
  const StepTimes times{.step = step.step, .begin = step.begin, .ranks = ranks};
  for (auto& o : observers_) o->on_times(times);
}

// Sends the times of the last step, which no further step can carry.
void Trainer::tell_last_times() {
  StepAccount& account = world_.progress().account();
  account.end_step(StepAccount::Clock::now());
  std::vector<double> sums(static_cast<std::size_t>(world_.size()) * kRankTimesFields);
  const auto place = static_cast<std::size_t>(world_.rank()) * kRankTimesFields;
  put_times(account.ended(), std::span(sums).subspan(place, kRankTimesFields));
  world_.all_reduce_sum(std::span<double>(sums));
  tell_times(take_times(sums));
}

bool Trainer::evaluation_is_due() const {
  const int64_t every = config_.evaluation.every;
  const RunPosition& position = state_->position;
  if (every <= 0) return false;
  if (position.step % every == 0) return true;
  // With local steps it comes at a meeting, at or after the multiple.
  return config_.comm.local.is_on() &&
         position.step / every > std::max<int64_t>(0, position.evaluated_step) / every;
}

int Trainer::run() {
  for (auto& o : observers_) o->on_start(state_->position.step + 1, state_->total_steps);
  const bool writes = options_.benchmark_steps == 0;
  Stopwatch run_watch;
  // The previous process may have been stopped between a step and its evaluation.
  if (writes && state_->position.step > 0 && (evaluation_is_due() || ends_evaluated_epoch()))
    evaluate();
  std::string reason = end_reason({});
  const StepInputs inputs{.next_batch = [this] { return next_batch(); },
                          .wish = [&] { return stop_wish(run_watch.seconds()); },
                          .stop_asked = [this] { return stop_asked(); },
                          .keep_batch = [this](const StepBatch& batch) { keep(batch); }};
  bool given_up = false;  // the last step was, for a stop
  while (reason.empty()) {
    StepOutcome outcome = train_step(*state_, inputs);
    if (outcome.out_of_memory) {
      sharing_->divide_more(state_->position, outcome.too_many_items);
      start_batches();  // the same batch again, in smaller parts
      continue;
    }
    tell_times(outcome.times_before);
    if (const auto written = writer_.take()) tell_saved(*written);
    sharing_->after_step(state_->position, outcome.times_before);
    if (outcome.intervention) intervene(*outcome.intervention);
    if (outcome.given_up) {
      stopping_ = given_up = true;
    } else if (outcome.counts) {
      if (!meet(outcome)) continue;
      look_after_weights(outcome.stop);
    } else if (ends_evaluated_epoch() && equal_step_ == state_->position.step) {
      evaluate();  // the epoch's last step was skipped
    }
    reason = end_reason(outcome.stop);
  }
  if (writes) {
    if (!given_up) tell_last_times();
    if (reason != "signal" && config_.evaluation.is_on()) {
      save(Saving::kBeside);  // before the evaluation, which may take long
      if (!stopping_) evaluate();
      if (state_->position.evaluated_step != state_->position.step) reason = "signal";
    }
    // A stop before the first step of all leaves nothing to save.
    if (reason != "signal" || state_->position.step > 0) save(Saving::kNow);
    windows_->finish(state_->position.step);
  }
  world_.progress().enter(Phase::kEnding);
  for (auto& o : observers_) o->on_end(reason);
  if (reason == "patience") {
    log_info("no improvement in {} evaluations: {}", config_.evaluation.patience,
             best_text(state_->position.validation));
  }
  if (reason != "signal") return 0;
  int signal = stop_signal.load();
  return signal != 0 ? signal : SIGTERM;  // the signal reached another rank
}

// Does nothing twice at one step. A stop breaks it off: it leaves no trace, the run stops, and the
// one that goes on from the checkpoint evaluates this step.
void Trainer::evaluate() {
  if (state_->position.evaluated_step == state_->position.step) return;
  world_.progress().enter(Phase::kEvaluation);
  const EvaluationSection& section = config_.evaluation;
  Stopwatch watch;
  Evaluation result;
  {
    state_->update.gather_average();
    UseForEvaluation use(task_.parameters(), state_->update.average(),
                         state_->statistics.for_evaluation());
    auto tell_batch = [this](const EvaluationProgress& progress) {
      for (auto& o : observers_) o->on_evaluation_batch(progress);
    };
    result = task_.evaluate(world_, {.split = section.split,
                                     .limit = section.limit,
                                     .metrics = section.metrics,
                                     .samples = section.samples,
                                     .confusion = config_.logging.pictures,
                                     .pictures = config_.logging.pictures,
                                     .stop_asked = [this] { return stop_asked(); },
                                     .progress = tell_batch});
    world_.check_gpu_operations();  // the results were waited for
  }
  if (result.broken_off) {
    stopping_ = true;
    log_info("the evaluation of step {} is broken off for a stop; the run that goes on begins it",
             with_commas(state_->position.step));
    return;
  }
  state_->position.evaluated_step = state_->position.step;
  Verdict verdict = note_evaluation(state_->position.validation, state_->position.step, result,
                                    task_.metrics(), config_.validation_rules());
  EvaluationRecord record{.step = state_->position.step,
                          .epoch = state_->position.epoch,
                          .seconds = watch.seconds(),
                          .improved = verdict.improved,
                          .result = &result};
  for (auto& o : observers_) o->on_evaluation(record);
  finish_saving();
  // A checkpoint of this step lacks this evaluation; a machine may have none of one that it began
  // with.
  const int64_t step = state_->position.step;
  if (saved_step_ == step && all_hold(world_, folder_, step, keeps_folder_)) {
    if (keeps_folder_) {
      renew_position(folder_.checkpoints(), state_->position);
      for (auto& o : observers_) o->on_checkpoint_renewed(step);
    }
    remove_others();
    return;
  }
  saved_step_ = -1;
  if (verdict.among_best) save(Saving::kBeside);
}

void Trainer::remove_others() {
  if (!keeps_folder_) return;
  remove_old_checkpoints(folder_.checkpoints(), config_.checkpoint.keep,
                         best_steps(state_->position.validation));
}

// Where micro-batches fill the memory of the CPU, a copy beside the next step would not fit.
bool Trainer::saves_beside() const {
  const bool fills = config_.training.fit_memory && task_.parameters().values().is_cpu();
  return config_.checkpoint.background && !fills;
}

// Saves this step, unless that was done. What was under way before is complete afterwards.
void Trainer::save(Saving how) {
  if (saved_step_ == state_->position.step) {
    if (how == Saving::kNow) finish_saving();
    return;
  }
  finish_saving();
  if (config_.training.check_weights_every > 0) check_weights(true);
  saved_step_ = state_->position.step;
  world_.progress().enter(Phase::kCheckpoint);
  Stopwatch watch;
  const CheckpointContent content = state_->collect(keeps_folder_);
  const bool beside = how == Saving::kBeside && saves_beside();
  if (keeps_folder_ && beside) writer_.start(folder_.checkpoints(), own_copy(content));
  held_seconds_ = watch.seconds();
  if (keeps_folder_ && !beside) {
    const WrittenCheckpoint written = write_now(folder_.checkpoints(), content);
    held_seconds_ = watch.seconds();
    tell_saved(written);
  }
  agree_on_stop();  // also keeps ranks from timing out while another writes to a slow disk
}

// Waits for the checkpoint that is under way.
void Trainer::finish_saving() {
  Stopwatch watch;
  const std::optional<WrittenCheckpoint> written = writer_.wait();
  held_seconds_ += watch.seconds();
  if (written) tell_saved(*written);
}

void Trainer::tell_saved(const WrittenCheckpoint& written) {
  remove_others();
  CheckpointRecord record{.step = written.step,
                          .seconds = held_seconds_,
                          .write_seconds = written.seconds,
                          .bytes = written.bytes,
                          .name = checkpoint_name(written.step)};
  for (auto& o : observers_) o->on_checkpoint(record);
  if (world_.is_leader()) tell_launcher(fmt::format("saved {}", written.step));
}

}  // namespace lockstep
