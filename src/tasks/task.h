// A task is what can be trained: data, network, loss and metrics behind one interface. The trainer
// knows nothing else about what it trains.
#pragma once

#include <torch/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "config/fields.h"
#include "data/steps/rank_shares.h"
#include "data/steps/step_size.h"
#include "dist/collectives/world.h"
#include "formats/png_file.h"
#include "metrics/confusion.h"
#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct TaskContext {
  torch::Device device = torch::kCPU;
  World* world = nullptr;       // of a training run; outlives the task's use
  int64_t ranks = 1;            // among which a step is split; of a benchmark not those of `world`
  std::string evaluated_split;  // split that training will evaluate; empty: none
  std::vector<std::string> evaluated_metrics = {};  // metrics that training will watch
  Numerics numerics;
  uint64_t seed = 1;
  fs::path run_folder;      // of an existing run that is opened for evaluation or use; else empty
  fs::path resumed_folder;  // of the run that resumes from a checkpoint; else empty
};

// The position of a micro-batch in the run.
struct BatchPosition {
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  int64_t part = 0;  // index among the parts of the step
  StepParts parts;   // of the step
};

// One micro-batch on the device. Each task derives its own type.
struct Batch {
  virtual ~Batch() = default;
  int64_t items = 0;    // sentences, images
  int64_t targets = 0;  // count over which the loss is averaged: target tokens, images
  int64_t sources = 0;  // source tokens; 0 for images
  int64_t part = 0;     // its number among the parts of the step

  // Returns the tensors to look at when something is wrong with the batch; some may be undefined.
  virtual std::vector<std::pair<std::string, torch::Tensor>> named_tensors() const { return {}; }
};

// Sums over one micro-batch.
struct LossParts {
  torch::Tensor loss;     // fp32 scalar with gradient: what is minimised
  torch::Tensor nll;      // fp32 scalar: -log p of the correct answers
  torch::Tensor correct;  // int64 scalar: number of correct answers
  torch::Tensor top5;     // int64 scalar: correct answers among the five most likely, or undefined
};

struct Sample {
  std::string source, reference, output;
  // For an image: what the network saw, on rank 0 only.
  std::shared_ptr<const RgbImage> picture = nullptr;
};

// A metric of an evaluation, under the name that configurations and metrics.jsonl use.
struct MetricKind {
  std::string name;
  bool higher_is_better = true;
  double whole = 1;  // value of a share of 1: 100 for percentages
};

// What this rank's next batch of an evaluation gave: sums over the batch.
struct EvaluationProgress {
  int64_t batch = 0, batches = 0;  // of this rank; batch counts from 0
  int64_t items = 0, correct = 0, top5 = 0;
  double loss = 0;
};

struct EvaluationRequest {
  std::string split = "dev";
  int64_t limit = 0;                 // items to decode; 0: all
  std::vector<std::string> metrics;  // required metrics; empty: all
  int64_t samples = 0;               // most samples wanted
  bool confusion = false;            // wants a confusion matrix, where there are classes
  bool pictures = false;             // samples include their pictures, where there are images
  // Asked between batches, from any thread: whether the run is to stop. Given on all ranks or none.
  std::function<bool()> stop_asked = nullptr;
  // Called after each batch of this rank by tasks that have top5; null: nobody listens.
  std::function<void(const EvaluationProgress&)> progress = nullptr;

  bool is_stopped() const { return stop_asked && stop_asked(); }
};

struct Evaluation {
  std::map<std::string, double> metrics;  // "bleu", "loss", ...
  std::string summary;                    // one line for people
  std::vector<Sample> samples;            // spread evenly over the split
  std::optional<Confusion> confusion;
  bool broken_off = false;  // equal on all ranks; nothing else here means anything then
};

// Call this after a rank's batches, before their sums mean something. Returns whether any rank was
// asked to stop: all break the evaluation off. Collective where `request` can be stopped.
bool breaks_off(World& world, const EvaluationRequest& request);

class ModelFolderUse;
class TranslationUse;
class ImageUse;
class TextUse;

// Which items a memory probe consists of.
enum class ProbeItems { kShortest, kLongest };

class Task {
 public:
  virtual ~Task() = default;

  // Declares the task's sections of the configuration.
  virtual void describe(Fields& f) = 0;
  // Reads the data's manifest, builds and initialises the network. Throws DataError, ConfigError.
  virtual void open(const TaskContext& context) = 0;

  // Returns a text that is equal for equal data, wherever it is stored; all ranks of a run must
  // have the same.
  virtual std::string data_identity() const = 0;

  virtual Parameters& parameters() = 0;
  virtual int64_t width() const { return 512; }     // of the model, for the noam schedule
  virtual int64_t accumulate() const { return 1; }  // micro-batches of a rank in one step
  virtual const char* unit() const = 0;             // of targets, short: "tok", "img"
  // Returns the style of the console's lines: "lockstep", "imagenet".
  virtual const char* log_style() const { return "lockstep"; }
  virtual bool counts_top5() const { return false; }  // whether LossParts::top5 is set
  // Whether a step needs all ranks together, so that no rank can compute by itself (local steps).
  virtual bool computes_together() const { return false; }
  // Returns the keys that say how large a step is, for checks; absent: it has none.
  virtual std::optional<StepSizeKeys> step_size_keys() { return std::nullopt; }
  // Returns the size of full steps from now on, once the task is open.
  virtual BatchSize step_size() const { return {}; }
  // Call it after open() and before the first batch: the first steps of `epoch` were of these
  // sizes. Its other items, each once, are divided into steps of step_size().
  virtual void continue_epoch(int64_t epoch, const std::vector<EpochStretch>& done) {}
  // Returns batch.shares; null: ranks have equal shares.
  virtual const SharesConfig* shares() const { return nullptr; }
  // Returns why the configuration leaves ranks no shares of their own; empty: nothing does.
  virtual std::string equal_shares_only() const { return ""; }
  // Returns the nearest benchmark of MLPerf Training: "resnet" (docs/run-folder.md#mlperf-logs).
  virtual const char* mlperf_benchmark() const { return "none"; }
  virtual int64_t shown_samples() const { return 3; }  // default after an evaluation

  virtual int64_t steps_in_epoch(int64_t epoch) = 0;
  // Returns the targets of the whole step, over all its parts; equal on every rank
  // without communication.
  virtual int64_t targets_in_step(int64_t epoch, int64_t step_in_epoch) = 0;
  // Returns the number of sentence pairs, images or texts to train on.
  virtual int64_t train_items() const = 0;
  // Returns the number of items in a split, as evaluate() would see all of it. Throws DataError
  // when there is no such split.
  virtual int64_t items_of(const std::string& split) = 0;
  // Returns the items in a full step over all ranks; where steps are cut by tokens, the mean over
  // an epoch.
  virtual double items_per_step() = 0;
  // Makes a micro-batch, on the prefetch thread; must not touch what training changes. Null: an
  // empty part.
  virtual std::unique_ptr<Batch> make_batch(const BatchPosition& position) = 0;

  // The following fit micro-batches to memory (train/parts/memory_fit.h). Load is what
  // divides a step into equal parts: source and target tokens, or images. 0: steps of
  // this task are not fitted.
  virtual int64_t largest_step_load() { return 0; }
  virtual int64_t smallest_load() const { return 64; }  // load of the first trial
  // Makes a batch of at least `load` from the shortest or longest items of the training data,
  // repeating them if necessary.
  virtual std::unique_ptr<Batch> make_probe(int64_t load, ProbeItems items) { return nullptr; }
  virtual void set_accumulate(int64_t micro_batches) {}  // called before the first batch is made

  // Sets the numerics from now on, at first those of open(). A step for which 16 bits were not
  // enough is repeated in fp32.
  virtual void compute_with(const Numerics& numerics) = 0;
  // `step` counts from 1 and seeds dropout. backward() must be started with Numerics::loss_scale.
  virtual LossParts loss(const Batch& batch, int64_t step) = 0;
  // Loads the weights of another model as initial weights. Returns false when `file` is of no kind
  // that the task knows better than by names and shapes. Throws DataError.
  virtual bool load_foreign_weights(const fs::path& file) { return false; }
  // The split that is evaluated during training, and the one that `lockstep evaluate` uses.
  virtual const char* tuning_split() const { return "dev"; }
  virtual const char* final_split() const { return "test"; }
  // Returns what evaluate() can measure; the first metric decides by default
  // which checkpoint is best.
  virtual const std::vector<MetricKind>& metrics() const = 0;
  // Evaluates a split, divided among the ranks, each item once. The result is equal on every rank
  // and has the same digits for any number of ranks. Uses the current weights as they are. Looks at
  // request.stop_asked between batches.
  virtual Evaluation evaluate(World& world, const EvaluationRequest& request) = 0;

  // Copies into the run folder what using the model needs besides its weights.
  virtual void save_assets(const fs::path& run_folder) {}

  // Returns the items of a split as far as the configuration alone determines them, before open();
  // 0: unknown.
  virtual int64_t configured_items(const std::string& split) const { return 0; }

  // The uses of the trained model (tasks/uses.h); null: not usable for that.
  virtual ModelFolderUse* model_folders() { return nullptr; }
  virtual TranslationUse* translating() { return nullptr; }
  virtual ImageUse* classifying_images() { return nullptr; }
  virtual TextUse* classifying_texts() { return nullptr; }
};

}  // namespace lockstep
