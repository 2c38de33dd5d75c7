#include "train/train_step.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/error.h"

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
Sums accumulate_gradients(Engine& engine, const StepBatch& batch, int64_t step) {
  Sums sums;
  for (std::size_t i = 0; i < batch.micro_batches.size(); ++i) {
    const Batch& micro = *batch.micro_batches[i];
    engine.reducer.prepare(i + 1 == batch.micro_batches.size());
    LossParts parts = engine.task.loss(micro, step);
    parts.loss.backward();
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

}  // namespace

StepOutcome train_step(Engine& engine, const StepBatch& batch, int64_t step, const StopWish& wish) {
  auto start = std::chrono::steady_clock::now();
  const TrainingSection& training = engine.config.training;

  Sums sums = accumulate_gradients(engine, batch, step);
  sums.out_of_time() = wish.out_of_time ? 1 : 0;
  sums.interrupted() = wish.interrupted ? 1 : 0;

  auto before_wait = std::chrono::steady_clock::now();
  ReduceTimings reduced = engine.reducer.finish();
  engine.world.all_reduce_sum(std::span<double>(sums.values));
  double wait_seconds = seconds_since(before_wait);

  engine.frozen.drop_gradients();
  // Gradients are sums over targets until here; the optimizer takes the factors in its one pass.
  auto targets = static_cast<double>(batch.targets);
  double norm = euclidean_norm(engine.task.parameters().gradients()) / targets;
  double loss = sums.loss() / targets;
  if (!std::isfinite(norm) || !std::isfinite(loss)) {
    throw DivergedError("step {}: loss {} and gradient norm {} are not finite", step, loss, norm);
  }
  bool clipped = training.clip_norm > 0 && norm > training.clip_norm;
  ScheduleContext schedule{.width = engine.task.width(), .total_steps = engine.total_steps};
  double lr =
      engine.config.optimizer->lr() * schedule_value(step, engine.config.schedule, schedule);
  engine.update.step({.lr = lr,
                      .gradient_scale = (clipped ? training.clip_norm / norm : 1) / targets,
                      .average_decay = average_decay(training.average_decay, step)});
  engine.frozen.restore(engine.update.average());

  StepOutcome outcome;
  outcome.stop = {.out_of_time = sums.out_of_time() > 0, .interrupted = sums.interrupted() > 0};
  outcome.record = {.step = step,
                    .total_steps = engine.total_steps,
                    .epoch = batch.epoch,
                    .loss = loss,
                    .nll = sums.nll() / targets,
                    .accuracy = sums.correct() / targets,
                    .lr = lr,
                    .gradient_norm = norm,
                    .targets = batch.targets,
                    .sources = static_cast<int64_t>(sums.sources()),
                    .items = static_cast<int64_t>(sums.items()),
                    .seconds = seconds_since(start),
                    .wait_seconds = wait_seconds,
                    .sent_bytes = reduced.bytes};
  outcome.record.compute_seconds = outcome.record.seconds - wait_seconds;
  return outcome;
}

}  // namespace lockstep
