// Defines the task of classifying images: a folder or shards of images, a network, cross-entropy,
// Acc@1 and Acc@5.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "batches/image_epochs.h"
#include "batches/image_loader.h"
#include "batches/shared_images.h"
#include "models/image_model.h"
#include "models/image_weights.h"
#include "tasks/classification_loss.h"
#include "tasks/task.h"
#include "tasks/uses.h"

namespace lockstep {

struct ImageBatchConfig {  // section [batch]
  int64_t images = 256;    // in one optimizer step, over all ranks; 0: by per_rank
  PerRankConfig per_rank;
  int64_t accumulate = 1;
  bool drop_last = false;
  int64_t evaluation_images = 64;
  SharesConfig shares;

  void describe(Fields& f);
};

// The image size in pixels by epoch (section [resolution]): progressive resizing as in FFCV's
// ImageNet recipe (Leclerc et al. 2022), and evaluation at another size than training (Touvron et
// al. 2019, "Fixing the train-test resolution discrepancy").
struct ResolutionConfig {
  int64_t start = 0;
  int64_t start_epoch = 0, end_epoch = 0;
  int64_t multiple = 32;
  int64_t evaluation = 0;

  void describe(Fields& f);
  // Returns the side in pixels for training in that epoch, where `size` is the largest: on the line
  // from `start` at start_epoch to `size` at end_epoch, rounded to a multiple.
  int64_t training_size(int64_t epoch, int64_t size) const;
};

struct ImageClassificationConfig {
  ImagesConfig images;
  ResolutionConfig resolution;
  std::string source;         // what the network begins with; empty: a new one
  std::string head = "auto";  // models/image_weights.h: plan_head()
  ImageModelConfig model;
  bool sync_batch_norm = false;
  bool average_flips = false;  // as FFCV's recipe evaluates
  double label_smoothing = 0;
  ImageBatchConfig batch;
};

struct ImageBatch : Batch {
  ImageTensors tensors;
  torch::Tensor rows;  // int64 [n]: keys of the images
  bool is_probe = false;

  std::vector<std::pair<std::string, torch::Tensor>> named_tensors() const override {
    return {{"images", tensors.images},
            {"labels", tensors.labels},
            {"other_labels", tensors.other_labels},
            {"weights", tensors.weights},
            {"indices", tensors.indices}};
  }
};

class ImageClassification : public Task, public ModelFolderUse, public ImageUse {
 public:
  void describe(Fields& f) override;
  void open(const TaskContext& context) override;
  std::string data_identity() const override;
  Parameters& parameters() override { return parameters_; }
  int64_t accumulate() const override { return config_.batch.accumulate; }
  std::optional<StepSizeKeys> step_size_keys() override {
    return StepSizeKeys{{{"images", &config_.batch.images}}, &config_.batch.per_rank};
  }
  BatchSize step_size() const override { return {step_images_, "images"}; }
  void continue_epoch(int64_t epoch, const std::vector<EpochStretch>& done) override {
    epochs_->continue_epoch(epoch, done);
  }
  const SharesConfig* shares() const override { return &config_.batch.shares; }
  std::string equal_shares_only() const override;
  const char* unit() const override { return "img"; }
  const char* mlperf_benchmark() const override { return "resnet"; }
  int64_t shown_samples() const override { return 9; }  // a square of images
  const char* log_style() const override { return "imagenet"; }
  bool computes_together() const override { return config_.sync_batch_norm; }
  bool counts_top5() const override { return true; }
  int64_t steps_in_epoch(int64_t epoch) override;
  int64_t targets_in_step(int64_t epoch, int64_t step_in_epoch) override;
  int64_t train_items() const override { return train_->size(); }
  int64_t items_of(const std::string& name) override {
    return count_images(config_.images.data, name);
  }
  double items_per_step() override { return static_cast<double>(step_images_); }
  std::unique_ptr<Batch> make_batch(const BatchPosition& position) override;
  int64_t largest_step_load() override;
  int64_t smallest_load() const override { return 4; }
  std::unique_ptr<Batch> make_probe(int64_t load, ProbeItems items) override;
  void set_accumulate(int64_t micro_batches) override { config_.batch.accumulate = micro_batches; }
  void compute_with(const Numerics& numerics) override { context_.numerics = numerics; }
  LossParts loss(const Batch& batch, int64_t step) override;
  bool load_foreign_weights(const fs::path& file) override;  // models/image_weights.h
  const char* tuning_split() const override { return "val"; }
  const char* final_split() const override { return "val"; }
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

  ImageUse* classifying_images() override { return this; }
  torch::Tensor read_image(const fs::path& file) const override;
  std::vector<std::vector<ClassProbability>> classify(const torch::Tensor& images,
                                                      int64_t most) const override;

  const ImageClassificationConfig& config() const { return config_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const ImageModel& model() const { return *model_; }
  // Returns the side of the images in evaluation, in pixels.
  int64_t evaluation_size() const;

 private:
  // A split for evaluation.
  struct Split {
    std::unique_ptr<SharedImages> set;
    std::unique_ptr<ImageLoader> loader;  // uses the set
  };

  // Takes network and pixels from model.source, or from what a run saved of it; returns the folder
  // of the initial weights, or an empty path.
  fs::path choose_network();
  void begin_with(const fs::path& source);              // the folder's weights; logs the result
  void save_network(const fs::path& run_folder) const;  // what choose_network() reads again
  void log_weights(const ImageWeightsRead& read) const;
  void open_data();
  void check_sizes() const;
  int64_t positive_class() const;  // throws ConfigError for a name that no class has
  // Opens it at the first call, which is then collective; `world` is null for a lone process.
  Split& split(const std::string& name, World* world);
  void check_steps();
  void fetch_ahead(const BatchPosition& position);
  // Warns of images that were left out, once for each in this process.
  void name_broken(const ImageSet& set, std::span<const int64_t> wanted, const ImageTensors& made);
  // Describes what the image was taken for, with its picture if wanted.
  Sample sample(const ImageSet& set, int64_t index, int64_t taken_for, bool picture) const;
  int64_t loader_threads() const;
  Numerics use_numerics() const;  // for evaluation and classifying
  torch::Tensor evaluated_logits(const torch::Tensor& images) const;  // fp32 [n, classes]

  ImageClassificationConfig config_;
  TaskContext context_;
  Parameters parameters_;
  std::unique_ptr<ImageModel> model_;
  std::vector<std::string> classes_;     // by label
  std::unique_ptr<SharedImages> train_;  // null when the model is only used
  std::unique_ptr<ImageLoader> train_loader_;
  int64_t step_images_ = 0;  // of a full step
  std::unique_ptr<ImageEpochs> epochs_;
  std::map<std::string, Split> splits_;                 // splits that were evaluated
  std::function<void(torch::Tensor&)> sum_over_ranks_;  // set where batch norms share statistics
  std::mutex mutex_;                                    // guards broken_
  std::set<std::string> broken_;                        // images already warned of
  // The first step that fetch_ahead() has not told of; -1: none yet. Of the prefetch thread.
  int64_t ahead_epoch_ = -1, ahead_step_ = 0;
};

std::unique_ptr<Task> make_image_classification();

}  // namespace lockstep
