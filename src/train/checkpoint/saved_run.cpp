#include "train/checkpoint/saved_run.h"

#include <algorithm>

#include "base/log.h"
#include "data/fetch/hub.h"
#include "tasks/catalogue.h"
#include "tasks/uses.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/precision.h"

namespace lockstep {

namespace {

// Returns device, numerics and folder for a task that is opened to be used.
TaskContext context_of(RunConfig& config, const fs::path& folder, const SavedRunOptions& options) {
  TaskContext context;
  context.device = choose_device(config, options.local_rank, options.local_size);
  settle_precision(config.run, context.device.is_cuda(), options.local_rank);
  context.numerics = choose_numerics(config.run);
  context.seed = static_cast<uint64_t>(config.run.seed);
  context.run_folder = folder;
  return context;
}

// Returns the name of the task that knows the model in a folder with a config.json. The first of
// the catalogue, translation, takes what no other task knows, and says what is wrong with it.
std::string task_of(const fs::path& folder) {
  const auto& items = tasks().items();
  const auto known = std::find_if(items.rbegin(), items.rend(), [&](const auto& item) {
    const std::unique_ptr<Task> task = item.entry();
    return task->model_folders() != nullptr && task->model_folders()->recognizes_folder(folder);
  });
  return known == items.rend() ? items.front().name : known->name;
}

// Configures a model that `lockstep export` or others wrote. Its config.json gives architecture,
// number format and use (decoding, image preprocessing); key=value `words` override it.
RunConfig exported_config(const std::string& given, const fs::path& folder,
                          const std::vector<std::string>& words) {
  const std::string name = (folder / "config.json").string(), task = task_of(folder);
  ConfigSource source = ConfigSource::from_text("", name);
  source.set("task.name", task, name);
  const std::unique_ptr<Task> closed = tasks().get(task)();
  fetch_companions(given, folder, closed->model_folders()->companion_files());
  for (const auto& [key, value] : closed->model_folders()->folder_settings(folder)) {
    source.set(key, value, name);
  }
  for (const std::string& word : words) source.override_with(word);
  return read_run_config(std::move(source));
}

}  // namespace

SavedRun open_saved_run(const fs::path& given, const SavedRunOptions& options) {
  const fs::path folder = hub_reference(given.string()) ? find_model(given.string()) : given;
  if (fs::exists(folder / "config.json")) {
    SavedRun saved{.config = exported_config(given.string(), folder, options.words),
                   .checkpoint = folder};
    saved.config.task->open(context_of(saved.config, folder, options));
    saved.config.task->model_folders()->load_folder(folder);
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
