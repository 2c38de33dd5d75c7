#include "tasks/text_classification.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "batches/shared_files.h"
#include "data/fetch/hub.h"
#include "formats/weight_files.h"

namespace lockstep {

namespace {

// In a run folder; config.json would mark an exported model.
const char* const kNetworkFile = "bert.json";

struct TextLossSection {
  TextClassificationConfig& config;
  void describe(Fields& f) {
    f("label_smoothing", &config.label_smoothing, Between{0, 1},
      "share of the target's probability that is spread over all classes");
  }
};

}  // namespace

void TextsConfig::describe(Fields& f) {
  f("data", &data, InputPath{}, "a folder made by lockstep prepare labelled");
  f("train_split", &train_split, Any{}, "the split that is learned from");
  f("positive", &positive, Any{},
    "of two classes the one that precision, recall and f1 are of; empty: the second");
}

void TextModelConfig::describe(Fields& f) {
  f("source", &source, InputPath{},
    "what it begins with: a folder of transformers (config.json, weights, vocab.txt), or "
    "hf:OWNER/NAME[@REVISION] from the Hugging Face hub; empty: a new network of these sizes");
  f("hidden_size", &hidden_size, AtLeast{1}, "width; with a source, its config.json says it");
  f("num_hidden_layers", &num_hidden_layers, AtLeast{1}, "likewise");
  f("num_attention_heads", &num_attention_heads, AtLeast{1}, "likewise");
  f("intermediate_size", &intermediate_size, AtLeast{1}, "width of feed-forward blocks; likewise");
  f("max_position_embeddings", &max_position_embeddings, AtLeast{1},
    "tokens of the longest text; likewise");
  f("hidden_dropout_prob", &hidden_dropout_prob, Between{-1, 1},
    "of embedded tokens and of each block's output; below 0: as the source, else 0.1");
  f("attention_probs_dropout_prob", &attention_probs_dropout_prob, Between{-1, 1},
    "of attention weights; likewise");
  f("classifier_dropout", &classifier_dropout, Between{-1, 1},
    "of what the classifier reads; below 0: as the source, else hidden_dropout_prob");
}

void TextClassification::describe(Fields& f) {
  f.section("texts", config_.texts, "what it learns from");
  f.section("model", config_.model, "the BERT");
  TextLossSection loss{config_};
  f.section("loss", loss, "what is minimised");
  f.section("batch", config_.batch, "what makes a step");
}

void TextClassification::open(const TaskContext& context) {
  context_ = context;
  fs::path weights;
  if (context.run_folder.empty()) {
    if (config_.texts.data.empty()) {
      throw ConfigError("texts.data: not set; expected a folder made by lockstep prepare labelled");
    }
    open_data();
    weights = choose_network();
  } else {
    const fs::path own = context.run_folder / kNetworkFile;
    bert_ = read_bert_config(fs::exists(own) ? own : context.run_folder);
    tokenizer_ = BertTokenizer::load(context.run_folder);
    check_vocabulary_fits(tokenizer_->identity(), context.run_folder.string(),
                          bert_.shape.vocab_size);
  }
  check_metrics(context.evaluated_metrics);
  positive_class();  // throws for an unknown name
  model_ = std::make_unique<Bert>(bert_.shape, parameters_);
  parameters_.allocate(context.device, context.numerics.compute, context.seed);
  if (!weights.empty()) begin_with(find_weight_file(weights));
  if (train_ == nullptr) return;
  check_lengths(*train_loader_, *train_);
  if (!context_.evaluated_split.empty()) split(context_.evaluated_split);
}

void TextClassification::open_data() {
  fetch_missing_files(context_.world, config_.texts.data,
                      [this] { return read_text_manifest(config_.texts.data).files; });
  train_ = std::make_unique<TextSet>(config_.texts.data, config_.texts.train_split);
  if (!train_->record().labelled) {
    throw DataError("{}: the split {} has no labels to learn", config_.texts.data,
                    config_.texts.train_split);
  }
  tokenizer_ = BertTokenizer::load(config_.texts.data);
  TextBatchConfig& batch = config_.batch;
  step_texts_ = batch.per_rank.is_on() ? batch.per_rank.settle(context_.ranks, batch.accumulate)
                                       : batch.examples;
  train_loader_ = std::make_unique<TextLoader>(
      *train_, batch,
      TextLoader::Options{.seed = context_.seed,
                          .ranks = context_.world == nullptr ? 1 : context_.world->size(),
                          .step_examples = step_texts_,
                          .device = context_.device});
}

fs::path TextClassification::choose_network() {
  const TextModelConfig& m = config_.model;
  BertShape& shape = bert_.shape;
  fs::path source;
  const fs::path own = context_.resumed_folder / kNetworkFile;
  if (!context_.resumed_folder.empty() && fs::exists(own)) {
    shape = read_bert_config(own).shape;  // its weights are in the checkpoint
  } else if (m.source.empty()) {
    shape.vocab_size = tokenizer_->identity().vocab_size;
    shape.hidden_size = m.hidden_size;
    shape.num_hidden_layers = m.num_hidden_layers;
    shape.num_attention_heads = m.num_attention_heads;
    shape.intermediate_size = m.intermediate_size;
    shape.max_position_embeddings = m.max_position_embeddings;
    const std::string wrong = check_shape(shape);
    if (!wrong.empty()) throw ConfigError("model.num_attention_heads: {}", wrong);
  } else {
    source = find_model(m.source);
    shape = read_bert_config(source).shape;
    if (find_weight_file(source).empty()) {
      throw DataError("model.source: {}: neither model.safetensors nor pytorch_model.bin",
                      source.string());
    }
    check_vocabulary_fits(tokenizer_->identity(), config_.texts.data, shape.vocab_size);
    if (fs::exists(source / "vocab.txt")) {
      check_same_tokenizer(tokenizer_->identity(), config_.texts.data,
                           BertTokenizer::load(source).identity(), m.source);
    }
  }
  if (m.hidden_dropout_prob >= 0) shape.hidden_dropout_prob = m.hidden_dropout_prob;
  if (m.attention_probs_dropout_prob >= 0) {
    shape.attention_probs_dropout_prob = m.attention_probs_dropout_prob;
  }
  if (m.classifier_dropout >= 0) shape.classifier_dropout = m.classifier_dropout;
  bert_.regression = train_->manifest().label_kind == LabelKind::kValue;
  bert_.labels = bert_.regression ? std::vector<std::string>{"LABEL_0"} : train_->classes();
  shape.num_labels = std::ssize(bert_.labels);
  return source;
}

bool TextClassification::load_foreign_weights(const fs::path& file) {
  if (!holds_bert_weights(file)) return false;
  begin_with(file);
  return true;
}

void TextClassification::begin_with(const fs::path& file) {
  const BertWeightsRead read = read_bert_weights(file, parameters_);
  log_info("a BERT of {} layers and width {} ({} tensors) from {}", bert_.shape.num_hidden_layers,
           bert_.shape.hidden_size, read.tensors, read.file.string());
  for (const std::string& note : read.notes) log_info("  {}", note);
}

void TextClassification::check_lengths(const TextLoader& loader, const TextSet& set) const {
  const std::span<const int32_t> lengths = loader.lengths();
  const int64_t most = bert_.shape.max_position_embeddings;
  const auto longest = std::max_element(lengths.begin(), lengths.end());
  if (longest == lengths.end() || *longest <= most) return;
  ConfigError error("{} has {} tokens, the network takes {}", set.name(longest - lengths.begin()),
                    *longest, most);
  error.set_advice(fmt::format("batch.longest={}, or prepare the texts with that length", most));
  throw error;
}

// Checks that the requested metrics can be measured for such labels.
void TextClassification::check_metrics(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    const bool of_values = name == "pearson" || name == "spearman" || name == "mse";
    if (name == "loss" || of_values == bert_.regression) continue;
    throw ConfigError("evaluation.metrics: {} is not measured where {}; expected {}", name,
                      bert_.regression ? "numbers are predicted" : "classes are told apart",
                      bert_.regression ? "pearson, spearman, mse or loss"
                                       : "accuracy, f1, precision, recall or loss");
  }
}

std::string TextClassification::data_identity() const {
  std::string text;
  for (std::size_t c = 0; c < bert_.labels.size(); ++c) {
    text += fmt::format("class {} = {}\n", c, bert_.labels[c]);
  }
  auto add = [&](const std::string& name, const TextSet& set) {
    text +=
        fmt::format("texts of {0} = {1}\nfile of {0} = {2}\n", name, set.size(), set.identity());
  };
  add(config_.texts.train_split, *train_);
  for (const auto& [name, split] : splits_) add(name, *split.set);
  return text;
}

void TextClassification::save_assets(const fs::path& run_folder) {
  write_bert_config(run_folder / kNetworkFile, bert_, "fp32");
  tokenizer_->save(run_folder);
}

int64_t TextClassification::steps_in_epoch(int64_t epoch) {
  return train_loader_->steps_in_epoch(epoch);
}

int64_t TextClassification::targets_in_step(int64_t epoch, int64_t step_in_epoch) {
  return train_loader_->examples_in_step(epoch, step_in_epoch);
}

double TextClassification::items_per_step() { return static_cast<double>(step_texts_); }

std::unique_ptr<TextBatch> TextClassification::pack(TextTensors tensors) const {
  auto batch = std::make_unique<TextBatch>();
  batch->texts = pack_texts(tensors.ids, tensors.type_ids, tensors.lengths, tensors.indices);
  batch->items = batch->targets = tensors.texts();
  batch->sources = tensors.tokens();
  batch->tensors = std::move(tensors);
  return batch;
}

std::unique_ptr<Batch> TextClassification::make_batch(const BatchPosition& position) {
  TextTensors tensors =
      train_loader_->batch(position.epoch, position.step_in_epoch, position.part, position.parts);
  if (tensors.texts() == 0) return nullptr;
  return pack(std::move(tensors));
}

int64_t TextClassification::largest_step_load() {
  int64_t most = 0;
  for (int64_t step = 0; step < train_loader_->steps_in_epoch(0); ++step) {
    most = std::max(most, train_loader_->tokens_in_step(0, step));
  }
  return most;
}

std::unique_ptr<Batch> TextClassification::make_probe(int64_t load, ProbeItems items) {
  const std::span<const int32_t> lengths = train_loader_->lengths();
  std::vector<int32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return items == ProbeItems::kShortest ? lengths[a] < lengths[b] : lengths[a] > lengths[b];
  });
  std::vector<int32_t> chosen;
  for (int64_t tokens = 0, i = 0; tokens < load; ++i) {
    chosen.push_back(order[static_cast<std::size_t>(i % std::ssize(order))]);
    tokens += lengths[chosen.back()];
  }
  return pack(train_loader_->pack(chosen));
}

LossParts TextClassification::loss_of(const torch::Tensor& logits,
                                      const torch::Tensor& labels) const {
  if (!bert_.regression) return classification_loss(logits, {labels}, config_.label_smoothing);
  LossParts out;
  out.loss = (logits.squeeze(1).to(torch::kFloat) - labels).square().sum();
  out.nll = out.loss.detach();
  out.correct = torch::zeros({}, labels.options().dtype(torch::kInt64));
  return out;
}

LossParts TextClassification::loss(const Batch& batch, int64_t step) {
  const auto& texts = static_cast<const TextBatch&>(batch);
  const BertForward how{
      .numerics = context_.numerics, .training = true, .seed = context_.seed, .step = step};
  return loss_of(model_->logits(texts.texts, how), texts.tensors.labels);
}

std::unique_ptr<Task> make_text_classification() { return std::make_unique<TextClassification>(); }

}  // namespace lockstep
