#include "train/saved_run.h"

#include "base/log.h"
#include "models/hugging_face.h"
#include "train/checkpoint.h"

namespace lockstep {

namespace {

// The configuration of a model that `lockstep export` wrote: of its architecture, its number
// format and its decoding; `words` go over it.
RunConfig exported_config(const fs::path& folder, const std::vector<std::string>& words) {
  const HuggingFaceModel model = read_hugging_face_config(folder);
  const std::string name = (folder / "config.json").string();
  ConfigSource source = ConfigSource::from_text("", name);
  auto set = [&](const std::string& key, const auto& value) {
    source.set(key, fmt::format("{}", value), name);
  };
  const TransformerConfig& c = model.config;
  set("model.d_model", c.d_model);
  set("model.heads", c.heads);
  set("model.encoder_layers", c.encoder_layers);
  set("model.decoder_layers", c.decoder_layers);
  set("model.feed_forward", c.feed_forward);
  set("model.dropout", c.dropout);
  set("model.attention_dropout", c.attention_dropout);
  set("model.relu_dropout", c.relu_dropout);
  set("model.norm", c.norm);
  set("model.activation", c.activation);
  set("model.positions", c.positions);
  set("model.vocabulary_multiple", c.vocabulary_multiple);
  set("run.precision", model.precision == "bf16" ? "bf16" : "fp32");
  if (model.precision == "int8") set("decoding.precision", "int8");
  set("decoding.beam_size", model.beam_size);
  set("decoding.length_penalty", model.length_penalty);
  for (const std::string& word : words) source.override_with(word);
  return read_run_config(std::move(source));
}

// Device, numerics and folder of a task that is opened to be used.
TaskContext context_of(const RunConfig& config, const fs::path& folder,
                       const SavedRunOptions& options) {
  TaskContext context;
  context.device = choose_device(config.run.device, options.local_rank, options.local_size);
  context.numerics = choose_numerics(config.run);
  context.seed = static_cast<uint64_t>(config.run.seed);
  context.run_folder = folder;
  return context;
}

}  // namespace

SavedRun open_saved_run(const fs::path& folder, const SavedRunOptions& options) {
  if (is_hugging_face_folder(folder)) {
    SavedRun saved{.config = exported_config(folder, options.words), .checkpoint = folder};
    saved.config.task->open(context_of(saved.config, folder, options));
    read_hugging_face_weights(folder, saved.config.task->parameters());
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
