// Defines the task of classifying texts and pairs of texts with a BERT, or regression: prepared
// texts, initial weights, cross-entropy or squared error, and scikit-learn's metrics.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batches/text_loader.h"
#include "data/tokenize/bert_tokenizer.h"
#include "models/bert.h"
#include "models/bert_weights.h"
#include "tasks/classification_loss.h"
#include "tasks/task.h"
#include "tasks/uses.h"

namespace lockstep {

struct TextsConfig {  // section [texts]
  std::string data;
  std::string train_split = "train";
  std::string positive;

  void describe(Fields& f);
};

// Keys are named as in config.json of transformers. A `source` brings its own values; those below 0
// are left to it.
struct TextModelConfig {  // section [model]
  std::string source;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_position_embeddings = 512;
  double hidden_dropout_prob = -1;
  double attention_probs_dropout_prob = -1;
  double classifier_dropout = -1;

  void describe(Fields& f);
};

struct TextClassificationConfig {
  TextsConfig texts;
  TextModelConfig model;
  double label_smoothing = 0;
  TextBatchConfig batch;
};

struct TextBatch : Batch {
  TextTensors tensors;
  PackedTexts texts;

  std::vector<std::pair<std::string, torch::Tensor>> named_tensors() const override {
    return {{"tokens", tensors.ids},
            {"types", tensors.type_ids},
            {"lengths", torch::tensor(tensors.lengths, torch::kInt)},
            {"labels", tensors.labels},
            {"indices", tensors.indices}};
  }
};

class TextClassification : public Task, public ModelFolderUse, public TextUse {
 public:
  void describe(Fields& f) override;
  void open(const TaskContext& context) override;
  std::string data_identity() const override;
  Parameters& parameters() override { return parameters_; }
  int64_t width() const override { return bert_.shape.hidden_size; }
  int64_t accumulate() const override { return config_.batch.accumulate; }
  std::optional<StepSizeKeys> step_size_keys() override {
    return StepSizeKeys{{{"examples", &config_.batch.examples}}, &config_.batch.per_rank};
  }
  BatchSize step_size() const override { return {step_texts_, "texts"}; }
  void continue_epoch(int64_t epoch, const std::vector<EpochStretch>& done) override {
    train_loader_->continue_epoch(epoch, done);
  }
  const SharesConfig* shares() const override { return &config_.batch.shares; }
  const char* unit() const override { return "txt"; }
  const char* mlperf_benchmark() const override { return "bert"; }
  int64_t steps_in_epoch(int64_t epoch) override;
  int64_t targets_in_step(int64_t epoch, int64_t step_in_epoch) override;
  int64_t train_items() const override { return train_->size(); }
  int64_t items_of(const std::string& name) override { return split(name).set->size(); }
  double items_per_step() override;
  std::unique_ptr<Batch> make_batch(const BatchPosition& position) override;
  int64_t largest_step_load() override;
  std::unique_ptr<Batch> make_probe(int64_t load, ProbeItems items) override;
  void set_accumulate(int64_t micro_batches) override { config_.batch.accumulate = micro_batches; }
  void compute_with(const Numerics& numerics) override { context_.numerics = numerics; }
  LossParts loss(const Batch& batch, int64_t step) override;
  bool load_foreign_weights(const fs::path& file) override;  // models/bert_weights.h
  const char* tuning_split() const override { return "validation"; }
  const char* final_split() const override { return "validation"; }
  const std::vector<MetricKind>& metrics() const override;
  Evaluation evaluate(World& world, const EvaluationRequest& request) override;
  void save_assets(const fs::path& run_folder) override;
  int64_t configured_items(const std::string& split) const override;

  ModelFolderUse* model_folders() override { return this; }
  int64_t write_folder(const ModelFolderOptions& options) override;
  bool recognizes_folder(const fs::path& folder) const override;
  std::vector<std::pair<std::string, std::string>> folder_settings(
      const fs::path& folder) const override;
  void load_folder(const fs::path& folder) override;

  TextUse* classifying_texts() override { return this; }
  bool predicts_values() const override { return bert_.regression; }
  torch::Tensor score(const std::vector<TextPair>& texts) const override;
  std::vector<std::vector<ClassProbability>> classify(const std::vector<TextPair>& texts,
                                                      int64_t most) const override;

  const BertConfig& bert() const { return bert_; }
  const Bert& model() const { return *model_; }
  const BertTokenizer& tokenizer() const { return *tokenizer_; }

 private:
  // A split for evaluation.
  struct Split {
    std::unique_ptr<TextSet> set;
    std::unique_ptr<TextLoader> loader;  // uses the set
  };
  // The network's answers for the items of a split, in their order, equal on all ranks.
  struct Answers {
    std::vector<double> output;     // the predicted class, or the value
    std::vector<double> loss, nll;  // of each item
    bool broken_off = false;
  };

  void open_data();
  void begin_with(const fs::path& weights);  // weights of transformers; logs the result
  fs::path choose_network();                 // returns the folder of initial weights; empty: none
  void check_lengths(const TextLoader& loader, const TextSet& set) const;
  void check_metrics(const std::vector<std::string>& names) const;
  Split& split(const std::string& name);  // opens it at the first call
  std::unique_ptr<TextBatch> pack(TextTensors tensors) const;
  Numerics use_numerics() const;  // for evaluation and classifying
  LossParts loss_of(const torch::Tensor& logits, const torch::Tensor& labels) const;
  Answers answer(World& world, const Split& from, const std::vector<int32_t>& items,
                 const EvaluationRequest& request) const;
  void measure_classes(const Split& from, const std::vector<int32_t>& items, const Answers& answers,
                       bool confusion, Evaluation& out) const;
  Sample sample(const Split& from, int32_t item, double output) const;
  int64_t positive_class() const;

  TextClassificationConfig config_;
  TaskContext context_;
  Parameters parameters_;
  BertConfig bert_;
  std::unique_ptr<Bert> model_;
  std::optional<BertTokenizer> tokenizer_;
  std::unique_ptr<TextSet> train_;  // null when the model is only used
  std::unique_ptr<TextLoader> train_loader_;
  int64_t step_texts_ = 0;               // of a full step
  std::map<std::string, Split> splits_;  // splits that were evaluated
};

std::unique_ptr<Task> make_text_classification();

}  // namespace lockstep
