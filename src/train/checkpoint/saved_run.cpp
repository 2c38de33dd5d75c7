#include "train/checkpoint/saved_run.h"

#include "base/log.h"
#include "data/fetch/hub.h"
#include "models/hugging_face.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/exported_model.h"
#include "train/config/precision.h"

namespace lockstep {

namespace {

// Device, numerics and folder of a task that is opened to be used.
TaskContext context_of(RunConfig& config, const fs::path& folder, const SavedRunOptions& options) {
  TaskContext context;
  context.device = choose_device(config.run.device, options.local_rank, options.local_size);
  settle_precision(config.run, context.device.is_cuda(), options.local_rank);
  context.numerics = choose_numerics(config.run);
  context.seed = static_cast<uint64_t>(config.run.seed);
  context.run_folder = folder;
  return context;
}

}  // namespace

SavedRun open_saved_run(const fs::path& given, const SavedRunOptions& options) {
  const fs::path folder = hub_reference(given.string()) ? find_model(given.string()) : given;
  if (is_hugging_face_folder(folder)) {
    SavedRun saved{.config = exported_config(folder, options.words), .checkpoint = folder};
    saved.config.task->open(context_of(saved.config, folder, options));
    load_exported_weights(folder, *saved.config.task);
    log_info("{}", folder.string());
    return saved;
  }
  RunFolder run(folder);
  run.require_run();
  SavedRun saved{.config = read_run_config(run.config(), options.words)};
  saved.checkpoint = find_checkpoint(run.checkpoints(), options.checkpoint);
  saved.config.task->open(context_of(saved.config, folder, options));
  load_weights_for_use(saved.checkpoint, saved.config.task->parameters());
  log_info("{}", saved.checkpoint.string());
  return saved;
}

}  // namespace lockstep
