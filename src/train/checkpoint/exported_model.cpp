#include "train/checkpoint/exported_model.h"

#include <fmt/ranges.h>

#include "base/log.h"
#include "formats/weight_files.h"
#include "models/bert_weights.h"
#include "models/classifier_folder.h"
#include "models/hugging_face.h"

namespace lockstep {

namespace {

// Sets keys to what a config.json says.
class Keys {
 public:
  explicit Keys(const fs::path& folder)
      : name_((folder / "config.json").string()), source_(ConfigSource::from_text("", name_)) {}

  template <typename T>
  void operator()(const std::string& key, const T& value) {
    source_.set(key, fmt::format("{}", value), name_);
  }
  ConfigSource take() { return std::move(source_); }

 private:
  std::string name_;
  ConfigSource source_;
};

void set_translation(const fs::path& folder, Keys& set) {
  const HuggingFaceModel model = read_hugging_face_config(folder);
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
}

void set_classifier(const fs::path& folder, Keys& set) {
  const ClassifierFolder found = read_classifier_folder(folder);
  for (const std::string& note : found.notes) log_warning("{}: {}", folder.string(), note);
  set("task.name", "images");
  set("model.name", found.model.name);
  set("model.stem", found.model.stem);
  set("model.patch", found.model.patch);
  set("model.pool", found.model.pool);
  set("model.norm_epsilon", found.model.norm_epsilon);
  set("images.size", found.size);
  set("images.eval_resize", found.resize);
  set("images.interpolation", found.interpolation);
  set("images.mean", found.mean);
  set("images.std", found.std);
  set("run.precision", found.precision);
}

}  // namespace

RunConfig exported_config(const fs::path& folder, const std::vector<std::string>& words) {
  Keys keys(folder);
  if (is_bert_folder(folder)) {
    keys("task.name", "text");  // the task reads its config.json
    keys("run.precision", "fp32");
  } else {
    (is_classifier_folder(folder) ? set_classifier : set_translation)(folder, keys);
  }
  ConfigSource source = keys.take();
  for (const std::string& word : words) source.override_with(word);
  return read_run_config(std::move(source));
}

void load_exported_weights(const fs::path& folder, Task& task) {
  const bool bert = is_bert_folder(folder);
  if (!bert && !is_classifier_folder(folder)) {
    return read_hugging_face_weights(folder, task.parameters());
  }
  const fs::path weights = bert ? find_weight_file(folder) : folder;
  if (weights.empty() || !task.load_foreign_weights(weights)) {
    throw DataError("{}: holds no weights of {}", folder.string(),
                    bert ? "a BERT" : "a ResNet or ViT");
  }
}

}  // namespace lockstep
