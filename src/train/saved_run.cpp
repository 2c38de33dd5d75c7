#include "train/saved_run.h"

#include "base/log.h"
#include "train/checkpoint.h"

namespace lockstep {

SavedRun open_saved_run(const fs::path& folder, const SavedRunOptions& options) {
  RunFolder run(folder);
  run.require_run();
  SavedRun saved{.config = read_run_config(run.config(), options.words)};
  saved.checkpoint = find_checkpoint(run.checkpoints(), options.checkpoint);
  TaskContext context;
  context.device = choose_device(saved.config.run.device, options.local_rank, options.local_size);
  context.numerics = choose_numerics(saved.config.run);
  context.seed = static_cast<uint64_t>(saved.config.run.seed);
  context.run_folder = folder;
  saved.config.task->open(context);
  load_weights_for_use(saved.checkpoint, saved.config.task->parameters());
  log_info("{}", saved.checkpoint.string());
  return saved;
}

}  // namespace lockstep
