#include "train/train_step.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "optim/larc.h"

namespace lockstep {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What the ranks add up besides the gradients, in one small message.
struct Sums {
  std::array<double, 7> values{};
  double& loss() { return values[0]; }
  double& nll() { return values[1]; }
  double& correct() { return values[2]; }
  double& sources() { return values[3]; }
  double& items() { return values[4]; }
  double& out_of_time() { return values[5]; }
  double& interrupted() { return values[6]; }
};

// Forward and backward of every micro-batch. Gradients add up locally; while the last micro-batch
// is still in its backward pass, finished buckets are on their way to the other ranks.
Sums accumulate_gradients(Engine& engine, const StepBatch& batch, int64_t step, double scale) {
  Sums sums;
  for (std::size_t i = 0; i < batch.micro_batches.size(); ++i) {
    const Batch& micro = *batch.micro_batches[i];
    engine.reducer.prepare(i + 1 == batch.micro_batches.size());
    LossParts parts = engine.task.loss(micro, step);
    parts.loss.backward(torch::full_like(parts.loss, scale));
    sums.loss() += parts.loss.item<double>();
    sums.nll() += parts.nll.item<double>();
    sums.correct() += static_cast<double>(parts.correct.item<int64_t>());
    sums.sources() += static_cast<double>(micro.sources);
    sums.items() += static_cast<double>(micro.items);
  }
  if (batch.micro_batches.empty()) engine.reducer.prepare(true);  // nothing to add, but to receive
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
  Sums sums;
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

  auto before_wait = std::chrono::steady_clock::now();
  pass.reduced = engine.reducer.finish();
  engine.world.all_reduce_sum(std::span<double>(pass.sums.values));
  pass.wait_seconds = seconds_since(before_wait);

  // Gradients are scaled sums over targets until the optimizer takes all factors in its one pass.
  const auto targets = static_cast<double>(batch.targets);
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
  const RunConfig& config = engine.config;
  const double clip_norm = config.training.clip_norm, norm = signs.gradient_norm;
  const double peak = config.optimizer->lr();
  const ScheduleContext context{
      .width = engine.task.width(), .total_steps = engine.total_steps, .lr = peak};
  const bool clipped = clip_norm > 0 && norm > clip_norm;
  StepSize size{.lr = peak * schedule_value(signs.step, config.schedule, context),
                .gradient_scale = (clipped ? clip_norm / norm : 1) / signs.gradient_factor,
                .average_decay = average_decay(config.training.average_decay, signs.step),
                .momentum = schedule_momentum(signs.step, config.schedule, context)};
  if (config.larc.is_on()) {
    size.layer_scales =
        larc_scales(engine.update.layers(), config.larc, size.lr, size.gradient_scale);
  }
  engine.update.step(size);
  engine.frozen.restore(engine.update.average());
  return size.lr;
}

}  // namespace

StepOutcome train_step(Engine& engine, const StepBatch& batch, int64_t step, const StopWish& wish) {
  auto start = std::chrono::steady_clock::now();
  Pass pass;
  StepVerdict verdict;
  do {  // once, unless a 16-bit format was not enough
    pass = run_pass(engine, batch, step, wish);
    verdict = engine.guard.judge(pass.signs);
    if (verdict != StepVerdict::kUpdate) pass.signs.gradients.zero_();
  } while (verdict == StepVerdict::kRepeat);

  Sums& sums = pass.sums;
  StepOutcome outcome{.updated = verdict == StepVerdict::kUpdate};
  outcome.stop = {.out_of_time = sums.out_of_time() > 0, .interrupted = sums.interrupted() > 0};
  if (!outcome.updated) return outcome;
  const double lr = update_weights(engine, pass.signs);
  const auto targets = static_cast<double>(batch.targets);
  outcome.record = {.step = step,
                    .total_steps = engine.total_steps,
                    .epoch = batch.epoch,
                    .loss = pass.signs.loss,
                    .nll = sums.nll() / targets,
                    .accuracy = sums.correct() / targets,
                    .lr = lr,
                    .gradient_norm = pass.signs.gradient_norm,
                    .loss_scale = pass.loss_scale,
                    .skipped_steps = engine.guard.skipped_steps(),
                    .targets = batch.targets,
                    .sources = static_cast<int64_t>(sums.sources()),
                    .items = static_cast<int64_t>(sums.items()),
                    .seconds = seconds_since(start),
                    .wait_seconds = pass.wait_seconds,
                    .sent_bytes = pass.reduced.bytes};
  outcome.record.compute_seconds = outcome.record.seconds - pass.wait_seconds;
  return outcome;
}

}  // namespace lockstep
