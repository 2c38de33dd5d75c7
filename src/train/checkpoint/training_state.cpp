#include "train/checkpoint/training_state.h"

#include "base/error.h"
#include "base/log.h"

namespace lockstep {

namespace {

int64_t bucket_bytes(const CommSection& comm) {
  return static_cast<int64_t>(comm.bucket_megabytes * 1e6);
}

std::unique_ptr<CommHook> gradient_hook(const RunConfig& config, Task& task, World& world,
                                        BucketClock* clock) {
  auto hook = make_comm_hook(world, config.comm.hooks, gradient_shapes(task.parameters()));
  return clock == nullptr ? std::move(hook) : time_buckets(std::move(hook), *clock);
}

std::vector<ReducedParameter> reduced_parameters(const Parameters& parameters) {
  std::vector<ReducedParameter> out;
  for (const ParameterRef& p : parameters.list()) out.push_back({p->value, p->offset, p->numel});
  return out;
}

}  // namespace

TrainingState::TrainingState(const RunConfig& config, Task& task, World& world,
                             const Numerics& numerics, BucketClock* clock)
    : config(config),
      task(task),
      world(world),
      statistics(world, task.parameters(), config.training.average_decay > 0),
      frozen(task.parameters(), config.training.freeze),
      update(world, task.parameters(), *config.optimizer,
             UpdateOptions{.average = config.training.average_decay > 0,
                           .sharded = config.training.shard_optimizer,
                           .decay_vectors = config.training.decay_vectors,
                           .no_decay = config.training.no_decay}),
      guard(numerics, config.loss_scale, config.training.divergence, config.guard),
      hook(world, gradient_hook(config, task, world, clock)),
      reducer(world, hook, reduced_parameters(task.parameters()), task.parameters().gradients(),
              {.bucket_bytes = bucket_bytes(config.comm),
               .whole_parameters = config.comm.hooks.needs_whole_parameters(),
               .even_alone = clock != nullptr}),
      local({world, task.parameters(), frozen, update.average()}, config.comm.local,
            config.comm.hooks, bucket_bytes(config.comm)) {}

// Returns what checkpoint.h writes and reads of this rank, without what is gathered from the
// others.
CheckpointContent TrainingState::content() {
  return {.position = position,
          .parameters = &task.parameters(),
          .average = update.average(),
          .buffers = statistics.now(),
          .average_buffers = statistics.average(),
          .optimizer = update.gather_state(),
          .guard = guard.state(),
          .outer = local.outer_state()};
}

CheckpointContent TrainingState::collect(bool keeps) {
  update.gather_average();
  CheckpointContent content = this->content();
  const RunningStatistics::Means means = statistics.means();
  content.buffers = means.now;
  content.average_buffers = means.average;
  content.ranks = gather_rank_states(*this, keeps);
  take_first_group(content);
  return content;
}

std::vector<Replica> TrainingState::replicas() {
  std::vector<Replica> out = {{"the weights", task.parameters().values()}};
  // Groups that take local steps, and shares of a sharded optimizer, have arrays of their own.
  if (config.training.shard_optimizer || config.comm.local.is_on()) return out;
  if (update.average().defined()) out.push_back({"their average", update.average()});
  for (const StateArray& array : update.gather_state().arrays) {
    out.push_back({"optimizer." + array.name, array.data});
  }
  return out;
}

void TrainingState::restore(const SharedCheckpoint& checkpoint) {
  CheckpointContent content = this->content();
  try {
    position = load_from_holder(world, checkpoint, content);
  } catch (Error& error) {
    error.add_context("resuming from " + checkpoint.path);
    throw;
  }
  update.set_state(content.optimizer);
  guard.set_state(content.guard);
  task.parameters().refresh_low();
  frozen.remember();
  restore_rank_states(*this, {checkpoint.path, checkpoint.holder});
}

}  // namespace lockstep
