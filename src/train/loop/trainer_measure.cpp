// Measures what a benchmark needs besides steps, for lockstep plan.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "train/loop/trainer.h"

namespace lockstep {

namespace {

// A temporary folder on the disk where `wanted` will be; the destructor removes it.
class FolderBeside {
 public:
  explicit FolderBeside(fs::path wanted) {
    wanted = fs::absolute(wanted);
    while (!fs::is_directory(wanted)) wanted = wanted.parent_path();
    std::string name = (wanted / "lockstep-plan-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw MachineError("no folder can be made in {}: {}", wanted.string(), std::strerror(errno));
    }
    path_ = name;
  }
  ~FolderBeside() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  FolderBeside(const FolderBeside&) = delete;
  FolderBeside& operator=(const FolderBeside&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void count_weights(const Parameters& parameters, RunMeasurement& out) {
  out.weights = parameters.count();
  out.gradient_bytes = static_cast<int64_t>(parameters.gradients().nbytes());
  for (const ParameterRef& p : parameters.list()) {
    if (p->shape.size() < 2) {
      out.other_numbers += p->numel;
    } else {
      out.matrix_sides += p->shape[0] + p->numel / std::max<int64_t>(1, p->shape[0]);
    }
  }
}

}  // namespace

RunMeasurement Trainer::measure() {
  RunMeasurement out;
  out.unit = task_.unit();
  out.device = task_.parameters().values().device().str();
  out.precision = config_.run.precision;
  out.hook = config_.comm.hooks.hook;
  out.ranks = world_.size();
  out.of_ranks = static_cast<int>(std::max<int64_t>(world_.size(), options_.benchmark_ranks));
  out.threads = at::get_num_threads();
  out.sharded = config_.training.shard_optimizer;
  count_weights(task_.parameters(), out);
  out.wire_factor = config_.comm.hooks.message_bytes(gradient_shapes(task_.parameters())) /
                    static_cast<double>(out.gradient_bytes);
  out.local_steps = config_.comm.local.is_on() ? config_.comm.local.local_steps : 1;
  out.streams = static_cast<int>(config_.comm.streams);
  out.steps_in_epoch = task_.steps_in_epoch(0);
  for (int64_t step = 0; step < out.steps_in_epoch; ++step) {
    out.targets_per_step += static_cast<double>(task_.targets_in_step(0, step));
  }
  out.targets_per_step /= static_cast<double>(std::max<int64_t>(1, out.steps_in_epoch));
  out.length = {.steps = config_.training.steps,
                .epochs = config_.training.epochs,
                .minutes = config_.training.minutes,
                .evaluation_every = config_.evaluation.every > 0
                                        ? config_.evaluation.every
                                        : config_.evaluation.every_epochs * out.steps_in_epoch,
                .evaluation_limit = config_.evaluation.limit,
                .checkpoint_every = config_.checkpoint.every,
                .checkpoints_kept = config_.checkpoint.keep +
                                    config_.checkpoint.keep_best *
                                        static_cast<int64_t>(config_.evaluation.is_on()
                                                                 ? config_.evaluation.metrics.size()
                                                                 : 0)};
  out.evaluation_split = config_.evaluation.split;
  time_checkpoint(out);
  if (config_.evaluation.is_on()) time_evaluation(out);
  return out;
}

void Trainer::time_checkpoint(RunMeasurement& out) {
  std::optional<FolderBeside> folder;
  if (world_.is_leader()) folder.emplace(folder_.path());
  CheckpointContent content = state_->collect(world_.is_leader());
  if (folder) {
    if (saves_beside()) own_copy(content);  // the first one brings memory
    const auto start = std::chrono::steady_clock::now();
    if (saves_beside()) content = own_copy(content);
    out.held_seconds = seconds_since(start);
    const WrittenCheckpoint written = write_now(folder->path(), content);
    out.checkpoint_bytes = written.bytes;
    out.checkpoint_seconds = written.seconds;
    if (!saves_beside()) out.held_seconds = written.seconds;
  }
  world_.barrier();
}

void Trainer::time_evaluation(RunMeasurement& out) {
  auto timed = [&](int64_t items) {
    auto start = std::chrono::steady_clock::now();
    task_.evaluate(
        world_,
        {.split = config_.evaluation.split, .limit = items, .metrics = config_.evaluation.metrics});
    return seconds_since(start);
  };
  const int64_t few = 4 * world_.size(), more = 5 * few;  // so that each rank has some
  out.evaluation_first_seconds = timed(few);
  double each = (timed(more) - out.evaluation_first_seconds) / static_cast<double>(more - few);
  out.evaluation_each_seconds = std::max(0.0, each);
}

}  // namespace lockstep
