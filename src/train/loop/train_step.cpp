#include "train/loop/train_step.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "arrays/cpu_allocator.h"
#include "base/clock.h"
#include "base/log.h"
#include "dist/account/progress.h"
#include "nn/device_memory.h"
#include "optim/optimizers/larc.h"
#include "train/parts/tree_sum.h"

namespace lockstep {

namespace {

// Returns whether a step that a rank cannot finish can be taken again in smaller parts: the ranks
// must exchange nothing within their passes, nor keep what they exchanged.
bool can_begin_again(TrainingState& state, int64_t step) {
  return !state.task.computes_together() && !state.local.is_local(step) &&
         state.hook.state().empty();
}

// Returns what the gradients of this rank's targets are multiplied by, before they are summed over
// the ranks and divided by the targets of the step: 1; or, for the mean of the ranks' means, the
// targets of the step over ranks times own targets. A rank without targets then counts as zeros.
double own_weight(const TrainingState& state,
                  const std::vector<std::unique_ptr<Batch>>& micro_batches, double targets) {
  if (state.config.training.gradient_mean != "ranks") return 1;
  double own = 0;
  for (const std::unique_ptr<Batch>& batch : micro_batches) {
    own += static_cast<double>(batch->targets);
  }
  return own > 0 ? targets / (static_cast<double>(state.world.size()) * own) : 0;
}

// With training.reproducible = "any-ranks" returns what adds this rank's parts of the step; nothing
// where it has one, whose gradients can be exchanged as they come.
std::optional<TreeSum> tree_of(const TrainingState& state) {
  const TrainingSection& training = state.config.training;
  const int64_t parts = training.any_ranks() ? training.virtual_shards / state.world.size() : 1;
  return parts > 1 ? std::optional<TreeSum>(parts) : std::nullopt;
}

// Returns the number of a micro-batch among the rank's parts.
int64_t leaf_of(const TrainingState& state, const Batch& batch) {
  return batch.part % (state.config.training.virtual_shards / state.world.size());
}

// Forward and backward over every micro-batch. Gradients accumulate locally; while the last
// micro-batch is still in its backward pass, finished buckets are already being all-reduced.
//
// A stop gives the step up where another micro-batch would begin, or where there is no batch. Then
// this rank still takes part in the sums, by which all learn of it, and so does a rank whose memory
// does not suffice. Groups that take steps on their own never give one up: they must all come to
// the same step.
void compute(TrainingState& state, const std::vector<std::unique_ptr<Batch>>& micro_batches,
             const StepInputs& inputs, StepPass& pass) {
  const int64_t step = state.position.step + 1;
  RankProgress& progress = state.world.progress();
  const double scale = pass.numerics.loss_scale * own_weight(state, micro_batches, pass.targets);
  const bool exchanges = state.local.reach(step) != Reach::kAlone;
  const TensorLimit limit(state.tensor_limit_bytes);
  bool prepared = false;  // for the exchange of this step
  std::optional<TreeSum> tree = tree_of(state);
  std::vector<LossParts> figures;
  for (const std::unique_ptr<Batch>& micro_batch : micro_batches) {
    const bool may_stop = micro_batch != micro_batches.front() && !state.local.is_local(step);
    if (may_stop && inputs.stop_asked()) {
      pass.own = {.given_up = 1};
      break;
    }
    prepared = micro_batch == micro_batches.back() && !tree;
    state.reducer.prepare(exchanges && prepared, pass.unit);
    try {
      progress.enter(Phase::kForward);
      LossParts parts = state.task.loss(*micro_batch, step);
      progress.enter(Phase::kBackward);
      parts.loss.backward(torch::full_like(parts.loss, scale));
      pass.own.add(*micro_batch);
      if (tree) tree->take(leaf_of(state, *micro_batch), state.task.parameters().gradients());
      parts.loss = parts.loss.detach();  // the graph goes with its micro-batch
      figures.push_back(std::move(parts));
    } catch (const std::exception& error) {
      if (!is_lack_of_memory(error) || !can_begin_again(state, step)) throw;
      log_warning("step {}: not enough memory for {} items at a time: {}", step, micro_batch->items,
                  allocator_text(error));
      pass.own = {.out_of_memory = 1};
      break;
    }
  }
  // A device is waited for once, when it has all of the step to do.
  if (pass.own.given_up == 0 && pass.own.out_of_memory == 0) pass.own.add(figures);
  if (tree) tree->put(state.task.parameters().gradients());
  // A rank without a share, or with sums that count for nothing, still takes part.
  if (!prepared) state.reducer.prepare(exchanges, pass.unit);
}

StepPass forward_and_backward(TrainingState& state, const std::optional<StepBatch>& batch,
                              const StepInputs& inputs) {
  const int64_t targets = batch ? batch->targets : 1;
  StepPass pass{.numerics = state.guard.numerics(targets), .loss_scale = state.guard.loss_scale()};
  pass.targets = static_cast<double>(targets);
  pass.unit = static_cast<double>(pass.numerics.loss_scale) * pass.targets;
  state.task.compute_with(pass.numerics);
  static const std::vector<std::unique_ptr<Batch>> none;
  if (!batch) pass.own.given_up = 1;
  compute(state, batch ? batch->micro_batches : none, inputs, pass);
  return pass;
}

// All-reduces gradients and totals. Gradients stay scaled sums over targets until the optimizer
// applies all factors in its one pass.
void reduce(TrainingState& state, const StepBooks& books, int64_t step, StepPass& pass) {
  books.write_message(pass);
  state.world.progress().enter(Phase::kWait);
  const auto before_wait = std::chrono::steady_clock::now();
  state.reducer.start_rest();
  Completion summed = state.world.start_all_reduce_sum(
      std::span<double>(pass.message), "figures of a step", state.local.reach(step));
  pass.reduced = state.reducer.finish();
  summed();
  pass.wait_seconds = seconds_since(before_wait);
  state.world.progress().enter(Phase::kOptimizer);
  books.read_message(pass);
  if (pass.totals.given_up > 0) return;

  state.frozen.drop_gradients();
  const torch::Tensor& gradients = state.task.parameters().gradients();
  // Ranks' means are weighed by the planned targets, so that these divide them.
  const bool means = state.config.training.gradient_mean == "ranks";
  const double targets = means ? pass.targets : pass.totals.targets;
  const double factor = targets * static_cast<double>(pass.numerics.loss_scale);
  pass.signs = {.step = step,
                .loss = pass.totals.loss / pass.totals.targets,
                .gradient_norm = euclidean_norm(gradients) / factor,
                .gradients = gradients,
                .gradient_factor = factor};
  state.world.check_gpu_operations();  // the norm was waited for
}

// Returns whether some rank's memory did not suffice; then nothing of the pass is left.
bool is_unfinished(TrainingState& state, const StepPass& pass) {
  if (pass.totals.out_of_memory == 0) return false;
  pass.signs.gradients.zero_();
  state.statistics.go_back();
  return true;
}

// Decides whether the gradients may update the weights; if not, they are zeroed.
void guard(TrainingState& state, const StepBatch& batch, const StepInputs& inputs, StepPass& pass) {
  if (pass.totals.targets == 0) return;  // a local step of a group without a share: no update
  try {
    pass.verdict = state.guard.judge(pass.signs);
  } catch (const DivergedError&) {
    inputs.keep_batch(batch);
    throw;
  }
  if (pass.verdict == StepVerdict::kUpdate) return;
  if (pass.verdict == StepVerdict::kPassOver || pass.verdict == StepVerdict::kRollBack) {
    inputs.keep_batch(batch);
  }
  pass.signs.gradients.zero_();
  state.statistics.go_back();
}

// Returns the decay of the moving average: small at first, so that it forgets the initial weights
// (as TensorFlow's ExponentialMovingAverage with num_updates).
double average_decay(double decay, int64_t step) {
  auto s = static_cast<double>(step);
  return std::min(decay, (1 + s) / (10 + s));
}

// Sets the learning rate from its schedule, and clips gradients to a norm or scales them by layer
// (LARC).
void clip(TrainingState& state, StepPass& pass) {
  const RunConfig& config = state.config;
  const StepSigns& signs = pass.signs;
  const double limit = config.training.clip_norm, norm = signs.gradient_norm;
  const double peak = config.optimizer->lr();
  const int64_t shift = state.position.schedule_shift;
  const ScheduleContext context{
      .width = state.task.width(), .total_steps = state.total_steps + shift, .lr = peak};
  const bool clipped = limit > 0 && norm > limit;
  pass.average_decay = average_decay(config.training.average_decay, signs.step);
  pass.size = {.lr = peak * schedule_value(signs.step + shift, config.schedule, context),
               .gradient_scale = (clipped ? limit / norm : 1) / signs.gradient_factor,
               // In local steps the average is updated at meetings.
               .average_decay = state.local.is_local(signs.step) ? 1 : pass.average_decay,
               .momentum = schedule_momentum(signs.step + shift, config.schedule, context)};
  if (!config.larc.is_on()) return;
  pass.size.layer_scales =
      larc_scales(state.update.layers(), config.larc, pass.size.lr, pass.size.gradient_scale);
}

void update(TrainingState& state, const StepPass& pass) {
  if (state.histograms != nullptr && state.histograms->is_due(pass.signs.step)) {
    state.histograms->take_gradients(1 / pass.signs.gradient_factor);
  }
  state.update.step(pass.size);
  state.statistics.move_average(pass.average_decay);
  state.frozen.restore(state.update.average());
}

void advance(TrainingState& state, const StepBatch& batch, bool counts) {
  if (counts) ++state.position.step;
  if (batch.epoch != state.position.epoch) state.position.done.clear();
  state.position.epoch = batch.epoch;
  state.position.step_in_epoch = batch.step_in_epoch + 1;
  state.position.targets_seen += batch.targets;
  state.epoch_done = batch.ends_epoch;
}

StepOutcome give_up(TrainingState& state, const StepBooks& books, const StepPass& pass) {
  torch::Tensor(state.task.parameters().gradients()).zero_();
  state.statistics.go_back();
  return books.close_given_up(pass);
}

}  // namespace

StepOutcome train_step(TrainingState& state, const StepInputs& inputs) {
  const int64_t step = state.position.step + 1;
  StepBooks books(state);
  const std::optional<StepBatch> batch = books.fetch(inputs);  // made on the prefetch thread
  state.hook.set_reach(state.local.reach(step));
  StepPass pass;
  do {  // once, unless a 16-bit format did not suffice
    state.statistics.remember();
    pass = forward_and_backward(state, batch, inputs);
    reduce(state, books, step, pass);
    if (pass.totals.given_up > 0) return give_up(state, books, pass);
    if (is_unfinished(state, pass)) return books.close_unfinished(*batch, pass);
    guard(state, *batch, inputs, pass);
  } while (pass.verdict == StepVerdict::kRepeat);
  if (pass.verdict == StepVerdict::kUpdate) {
    clip(state, pass);
    update(state, pass);
  }
  StepOutcome outcome = books.close(*batch, pass);
  advance(state, *batch, outcome.counts);
  return outcome;
}

}  // namespace lockstep
