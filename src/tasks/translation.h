// Defines the task of translating sentences with a Transformer: corpus, network, loss, BLEU.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/manifest/manifest.h"
#include "data/parallel/batch_plan.h"
#include "data/tokenize/translation_tokenizer.h"
#include "formats/token_file.h"
#include "models/published_model.h"
#include "models/transformer.h"
#include "nn/cross_entropy.h"
#include "tasks/task.h"
#include "tasks/translator.h"
#include "tasks/uses.h"

namespace lockstep {

// Section [model].
struct TranslationModelConfig : TransformerConfig {
  std::string source, source_language, target_language;

  void describe(Fields& f);
};

struct TranslationConfig {
  std::string corpus;
  double label_smoothing = 0.1;  // Vaswani et al. 2017, section 5.4
  SmoothingRule smoothing;
  TranslationModelConfig model;
  BatchConfig batch;
  DecodingConfig decoding;
};

struct TranslationBatch : Batch {
  TranslationInput input;
  torch::Tensor targets_out;  // int64 [target tokens]: the target shifted left; ends in </s>

  std::vector<std::pair<std::string, torch::Tensor>> named_tensors() const override {
    return {{"source.tokens", input.source.tokens}, {"source.positions", input.source.positions},
            {"target.tokens", input.target.tokens}, {"target.positions", input.target.positions},
            {"target.rows", input.target.rows},     {"target.expected", targets_out}};
  }
};

class Translation : public Task, public ModelFolderUse, public TranslationUse {
 public:
  void describe(Fields& f) override;
  void open(const TaskContext& context) override;
  Parameters& parameters() override { return parameters_; }
  int64_t width() const override { return config_.model.d_model; }
  int64_t accumulate() const override { return config_.batch.accumulate; }
  std::optional<StepSizeKeys> step_size_keys() override {
    return StepSizeKeys{
        {{"tokens", &config_.batch.tokens}, {"sentences", &config_.batch.sentences}},
        &config_.batch.per_rank};
  }
  BatchSize step_size() const override { return steps_.step_size(); }
  void continue_epoch(int64_t epoch, const std::vector<EpochStretch>& done) override;
  const SharesConfig* shares() const override { return &config_.batch.shares; }
  const char* unit() const override { return "tok"; }
  const char* mlperf_benchmark() const override { return "transformer"; }
  int64_t steps_in_epoch(int64_t epoch) override;
  int64_t targets_in_step(int64_t epoch, int64_t step_in_epoch) override;
  int64_t train_items() const override;
  int64_t items_of(const std::string& split) override;
  double items_per_step() override;
  std::unique_ptr<Batch> make_batch(const BatchPosition& position) override;
  int64_t largest_step_load() override;
  std::unique_ptr<Batch> make_probe(int64_t load, ProbeItems items) override;
  void set_accumulate(int64_t micro_batches) override { config_.batch.accumulate = micro_batches; }
  void compute_with(const Numerics& numerics) override { context_.numerics = numerics; }
  LossParts loss(const Batch& batch, int64_t step) override;
  const std::vector<MetricKind>& metrics() const override;
  Evaluation evaluate(World& world, const EvaluationRequest& request) override;
  std::string data_identity() const override;
  void save_assets(const fs::path& run_folder) override;
  int64_t configured_items(const std::string& split) const override;

  ModelFolderUse* model_folders() override { return this; }
  int64_t write_folder(const ModelFolderOptions& options) override;
  bool recognizes_folder(const fs::path& folder) const override;
  std::vector<std::pair<std::string, std::string>> folder_settings(
      const fs::path& folder) const override;
  void load_folder(const fs::path& folder) override;
  std::vector<std::string> companion_files() const override;

  TranslationUse* translating() override { return this; }
  std::unique_ptr<Translator> translator() const override;
  std::vector<std::string> translate_shared(World& world,
                                            const std::vector<std::string>& lines) const override;
  std::vector<ScoredPair> score(const std::vector<std::string>& sources,
                                const std::vector<std::string>& targets) const override;
  std::string model_text() const override;
  // Returns one translation per line; empty lines stay empty.
  std::vector<std::string> translate(const std::vector<std::string>& lines) const;

  const TranslationConfig& config() const { return config_; }
  const Transformer& model() const { return *model_; }
  const TranslationTokenizer& tokenizer() const { return *tokenizer_; }
  const Subword& subword() const { return tokenizer_->subword(); }
  const SpecialIds& special() const { return special_; }

 private:
  struct Corpus;  // the training data; null when the model is only used

  // The network and its vocabulary (translation_network.cpp).
  fs::path choose_network();  // returns the folder of initial weights; empty: none
  void take_network(const fs::path& config);
  void check_vocabulary(const std::string& source_name, const fs::path& source) const;
  SpecialIds choose_special_ids() const;
  int32_t language_token(const std::string& side) const;
  void check_tokenizer_fits() const;
  void begin_with(const fs::path& folder);
  void save_network(const fs::path& run_folder) const;
  int64_t write_published_folder(const ModelFolderOptions& options);

  const std::vector<StepPlan>& plan(int64_t epoch);
  ForwardContext forward_context(bool training, int64_t step) const;
  Numerics use_numerics() const;  // for evaluation and translation
  // Returns the sums over one batch, by the configured loss.
  LossParts batch_loss(const TranslationBatch& batch, const ForwardContext& context) const;
  // Makes a batch of the pairs as the network reads them, each side cut to
  // `longest` pieces (0: not cut).
  std::unique_ptr<TranslationBatch> make_translation_batch(const TokenFile& tokens,
                                                           const std::vector<int32_t>& pairs,
                                                           int64_t longest) const;
  // Measures loss, nll, perplexity and accuracy on a whole split, teacher-forced.
  void measure_loss(World& world, const EvaluationRequest& request, Evaluation& out);
  // translate_shared() that leaves lines out once the request is stopped.
  std::vector<std::string> translate_until_stopped(World& world,
                                                   const std::vector<std::string>& lines,
                                                   const EvaluationRequest& request) const;
  // Translates the split and measures bleu and chrf.
  void measure_translation(World& world, const EvaluationRequest& request, Evaluation& out);

  TranslationConfig config_;
  BatchConfig steps_;  // config_.batch with the size of the whole step
  TaskContext context_;
  Parameters parameters_;
  std::unique_ptr<Transformer> model_;
  std::optional<TranslationTokenizer> tokenizer_;
  SpecialIds special_;
  std::optional<PublishedModel> published_;  // the model that this one began with, or is
  // A model that lockstep exported, with which this one began: its config.json.
  std::string exported_json_;
  std::shared_ptr<Corpus> corpus_;
};

std::unique_ptr<Task> make_translation();

}  // namespace lockstep
