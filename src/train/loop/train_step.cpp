#include "train/loop/train_step.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "base/clock.h"
#include "dist/account/progress.h"
#include "optim/larc.h"
#include "train/records/rank_times.h"

namespace lockstep {

namespace {

// What the ranks add up besides the gradients, in one small message: figures of the step, and of
// each rank, in its own place, the times of the step before.
struct Sums {
  static constexpr std::size_t kFigures = 10;
  std::vector<double> values;
  Sums() : Sums(0) {}
  explicit Sums(int ranks)
      : values(kFigures + static_cast<std::size_t>(ranks) * kRankTimesFields) {}
  std::span<double> times() { return std::span(values).subspan(kFigures); }
  double& loss() { return values[0]; }
  double& nll() { return values[1]; }
  double& correct() { return values[2]; }
  double& sources() { return values[3]; }
  double& items() { return values[4]; }
  double& out_of_time() { return values[5]; }
  double& interrupted() { return values[6]; }
  double& targets() { return values[7]; }
  double& top5() { return values[8]; }
  double& trace_steps() { return values[9]; }
};

// Forward and backward of every micro-batch. Gradients add up locally; while the last micro-batch
// is still in its backward pass, finished buckets are on their way to the other ranks.
Sums accumulate_gradients(Engine& engine, const StepBatch& batch, int64_t step, double scale) {
  Sums sums(engine.world.size());
  RankProgress& progress = engine.world.progress();
  const bool exchanges = engine.local.reach(step) != Reach::kAlone;
  const double unit = scale * static_cast<double>(batch.targets);  // as run_pass divides
  for (std::size_t i = 0; i < batch.micro_batches.size(); ++i) {
    const Batch& micro = *batch.micro_batches[i];
    engine.reducer.prepare(exchanges && i + 1 == batch.micro_batches.size(), unit);
    progress.enter(Phase::kForward);
    LossParts parts = engine.task.loss(micro, step);
    progress.enter(Phase::kBackward);
    parts.loss.backward(torch::full_like(parts.loss, scale));
    sums.loss() += parts.loss.item<double>();
    sums.nll() += parts.nll.item<double>();
    sums.correct() += static_cast<double>(parts.correct.item<int64_t>());
    if (parts.top5.defined()) sums.top5() += static_cast<double>(parts.top5.item<int64_t>());
    sums.sources() += static_cast<double>(micro.sources);
    sums.items() += static_cast<double>(micro.items);
    sums.targets() += static_cast<double>(micro.targets);
  }
  // Nothing to add, but to receive.
  if (batch.micro_batches.empty()) engine.reducer.prepare(exchanges, unit);
  return sums;
}

// Of the moving average: short at first, so that it forgets the initial weights (as TensorFlow's
// ExponentialMovingAverage with num_updates).
double average_decay(double decay, int64_t step) {
  auto s = static_cast<double>(step);
  return std::min(decay, (1 + s) / (10 + s));
}

// One forward and backward pass over the step's batch, reduced over all ranks.
struct Pass {
  Sums sums;                             // over the ranks that took part
  double own_loss = 0, own_targets = 0;  // of this rank
  ReduceTimings reduced;
  double wait_seconds = 0;
  std::optional<double> loss_scale;  // in fp16
  StepSigns signs;
};

Pass run_pass(Engine& engine, const StepBatch& batch, int64_t step, const StopWish& wish) {
  const Numerics numerics = engine.guard.numerics(batch.targets);
  engine.task.compute_with(numerics);
  Pass pass{.loss_scale = engine.guard.loss_scale()};
  pass.sums = accumulate_gradients(engine, batch, step, numerics.loss_scale);
  pass.sums.out_of_time() = wish.out_of_time ? 1 : 0;
  pass.sums.interrupted() = wish.interrupted ? 1 : 0;
  pass.sums.trace_steps() = static_cast<double>(wish.trace_steps);
  const auto place = static_cast<std::size_t>(engine.world.rank()) * kRankTimesFields;
  put_times(engine.world.progress().account().ended(),
            pass.sums.times().subspan(place, kRankTimesFields));
  pass.own_loss = pass.sums.loss();
  pass.own_targets = pass.sums.targets();

  engine.world.progress().enter(Phase::kWait);
  auto before_wait = std::chrono::steady_clock::now();
  engine.reducer.start_rest();
  Completion summed = engine.world.start_all_reduce_sum(
      std::span<double>(pass.sums.values), "figures of a step", engine.local.reach(step));
  pass.reduced = engine.reducer.finish();
  summed();
  pass.wait_seconds = seconds_since(before_wait);
  engine.world.progress().enter(Phase::kOptimizer);

  // Gradients are scaled sums over targets until the optimizer takes all factors in its one pass.
  const double targets = pass.sums.targets();
  engine.frozen.drop_gradients();
  const torch::Tensor& gradients = engine.task.parameters().gradients();
  const double factor = targets * static_cast<double>(numerics.loss_scale);
  pass.signs = {.step = step,
                .loss = pass.sums.loss() / targets,
                .gradient_norm = euclidean_norm(gradients) / factor,
                .gradients = gradients,
                .gradient_factor = factor};
  return pass;
}

// Clipping or LARC, the learning rate, the optimizer. Returns the learning rate.
double update_weights(Engine& engine, const StepSigns& signs) {
  // The average of local steps moves where groups meet.
  const bool local = engine.local.is_local(signs.step);
  const RunConfig& config = engine.config;
  const double clip_norm = config.training.clip_norm, norm = signs.gradient_norm;
  const double peak = config.optimizer->lr();
  const ScheduleContext context{
      .width = engine.task.width(), .total_steps = engine.total_steps, .lr = peak};
  const bool clipped = clip_norm > 0 && norm > clip_norm;
  StepSize size{
      .lr = peak * schedule_value(signs.step, config.schedule, context),
      .gradient_scale = (clipped ? clip_norm / norm : 1) / signs.gradient_factor,
      .average_decay = local ? 1 : average_decay(config.training.average_decay, signs.step),
      .momentum = schedule_momentum(signs.step, config.schedule, context)};
  if (config.larc.is_on()) {
    size.layer_scales =
        larc_scales(engine.update.layers(), config.larc, size.lr, size.gradient_scale);
  }
  engine.update.step(size);
  engine.statistics.move_average(average_decay(config.training.average_decay, signs.step));
  engine.frozen.restore(engine.update.average());
  return size.lr;
}

// What the rank's account says at one moment of a step.
struct Account {
  RankTimes times;
  int64_t sent = 0, received = 0;
  explicit Account(StepAccount& account)
      : times(account.so_far()),
        sent(account.moved().sent()),
        received(account.moved().received()) {}
};

// Of the time between the two.
void add_account(const Account& begin, const Account& end, StepRecord& record) {
  const RankTimes &before = begin.times, &after = end.times;
  record.forward_seconds = after.forward - before.forward;
  record.backward_seconds = after.backward - before.backward;
  record.optimizer_seconds = after.optimizer - before.optimizer;
  record.other_seconds = std::max(0.0, record.compute_seconds - record.forward_seconds -
                                           record.backward_seconds - record.optimizer_seconds);
  record.hidden_seconds = after.hidden - before.hidden;
  record.payload_sent_bytes = end.sent - begin.sent;
  record.received_bytes = end.received - begin.received;
}

// All but the learning rate and the times of the whole step.
StepRecord record_of(const Engine& engine, const StepBatch& batch, Pass& pass) {
  Sums& sums = pass.sums;
  const double targets = sums.targets();
  StepRecord record{.step = pass.signs.step,
                    .total_steps = engine.total_steps,
                    .epoch = batch.epoch,
                    .step_in_epoch = batch.step_in_epoch,
                    .steps_in_epoch = batch.steps_in_epoch,
                    .loss = pass.signs.loss,
                    .nll = sums.nll() / targets,
                    .accuracy = sums.correct() / targets,
                    .gradient_norm = pass.signs.gradient_norm,
                    .loss_scale = pass.loss_scale,
                    .skipped_steps = engine.guard.skipped_steps(),
                    .targets = batch.targets,
                    .sources = static_cast<int64_t>(sums.sources()),
                    .items = static_cast<int64_t>(sums.items()),
                    .wait_seconds = pass.wait_seconds,
                    .sent_bytes = pass.reduced.bytes,
                    .local = engine.local.is_local(pass.signs.step)};
  if (engine.task.counts_top5()) record.top5 = sums.top5() / targets;
  return record;
}

}  // namespace

StepOutcome train_step(Engine& engine, const StepBatch& batch, int64_t step, const StopWish& wish) {
  auto start = std::chrono::steady_clock::now();
  RankProgress& progress = engine.world.progress();
  const Account begin(progress.account());  // not 0: of passes whose batches were lost
  const bool local = engine.local.is_local(step);
  Pass pass;
  StepVerdict verdict = StepVerdict::kSkip;
  do {  // once, unless a 16-bit format was not enough
    engine.statistics.remember();
    pass = run_pass(engine, batch, step, wish);
    if (pass.sums.targets() == 0) break;  // of a local step
    verdict = engine.guard.judge(pass.signs);
    if (verdict != StepVerdict::kUpdate) {
      pass.signs.gradients.zero_();
      engine.statistics.go_back();
    }
  } while (verdict == StepVerdict::kRepeat);

  Sums& sums = pass.sums;
  StepOutcome outcome{.updated = verdict == StepVerdict::kUpdate};
  outcome.counts = outcome.updated || local;
  outcome.stop = {.out_of_time = sums.out_of_time() > 0,
                  .interrupted = sums.interrupted() > 0,
                  .trace_steps = static_cast<int64_t>(sums.trace_steps())};
  if (engine.world.is_leader()) outcome.times_before = take_times(sums.times());
  outcome.left = {.step = step,
                  .targets = static_cast<int64_t>(pass.own_targets),
                  .all_targets = batch.targets,
                  .loss = outcome.updated ? pass.own_loss : 0,
                  .stop = local ? wish : outcome.stop};
  if (!outcome.updated) return outcome;
  if (engine.histograms != nullptr && engine.histograms->is_due(step)) {
    engine.histograms->take_gradients(1 / pass.signs.gradient_factor);
  }
  const double lr = update_weights(engine, pass.signs);
  outcome.left.average_decay = average_decay(engine.config.training.average_decay, step);
  outcome.record = record_of(engine, batch, pass);
  outcome.record.lr = lr;
  outcome.record.seconds = seconds_since(start);
  outcome.record.compute_seconds = outcome.record.seconds - pass.wait_seconds;
  progress.enter(Phase::kOther);
  add_account(begin, Account(progress.account()), outcome.record);
  return outcome;
}

}  // namespace lockstep
