// What one can train: data, network, loss and metrics behind one interface. The trainer knows
// nothing else about what it trains.
#pragma once

#include <torch/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "config/fields.h"
#include "dist/collectives/world.h"
#include "formats/png_file.h"
#include "metrics/confusion.h"
#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct TaskContext {
  torch::Device device = torch::kCPU;
  World* world = nullptr;       // of a run that trains; outlives the task's use
  std::string evaluated_split;  // that training will ask to evaluate; empty: none
  std::vector<std::string> evaluated_metrics = {};  // that it will watch then
  Numerics numerics;
  uint64_t seed = 1;
  fs::path run_folder;  // of an existing run, when it is opened to evaluate or use it; else empty
  fs::path resumed_folder;  // of the run that goes on from a checkpoint; else empty
};

// Where a micro-batch stands in the run.
struct BatchPosition {
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  int64_t part = 0;   // which of the parts of the step
  int64_t parts = 1;  // ranks * accumulated micro-batches
};

// One micro-batch on the device. A task derives its own.
struct Batch {
  virtual ~Batch() = default;
  int64_t items = 0;    // sentences, images
  int64_t targets = 0;  // what the loss is averaged over: target tokens, images
  int64_t sources = 0;  // source tokens; 0 for images
};

// Sums over one micro-batch.
struct LossParts {
  torch::Tensor loss;     // fp32 scalar with gradient: what is minimised
  torch::Tensor nll;      // fp32 scalar: -log p of the right answers
  torch::Tensor correct;  // int64 scalar: right answers
  torch::Tensor top5;     // int64 scalar: right answers among the five most likely, or undefined
};

struct Sample {
  std::string source, reference, output;
  // Of an image what the network saw, on rank 0 only.
  std::shared_ptr<const RgbImage> picture = nullptr;
};

// A figure that an evaluation gives, by the name that configurations and metrics.jsonl use.
struct MetricKind {
  std::string name;
  bool higher_is_better = true;
  double whole = 1;  // what a share of 1 is: 100 for percentages
};

struct EvaluationRequest {
  std::string split = "dev";
  int64_t limit = 0;                 // items that are decoded; 0: all
  std::vector<std::string> metrics;  // that must be there; empty: all
  int64_t samples = 0;               // wanted at most
  bool confusion = false;            // a matrix of what was taken for what, where there are classes
  bool pictures = false;             // samples have theirs, where there are images
};

struct Evaluation {
  std::map<std::string, double> metrics;  // "bleu", "loss", ...
  std::string summary;                    // one line for people
  std::vector<Sample> samples;            // spread evenly over the split
  std::optional<Confusion> confusion;
};

class ModelFolderUse;
class TranslationUse;
class ImageUse;
class TextUse;

// Which items a probe of memory is made of.
enum class ProbeItems { kShortest, kLongest };

class Task {
 public:
  virtual ~Task() = default;

  // The task's sections of the configuration.
  virtual void describe(Fields& f) = 0;
  // Reads the data's manifest, builds and initialises the network. Throws DataError, ConfigError.
  virtual void open(const TaskContext& context) = 0;

  // Equal for equal data, wherever they lie: what all ranks of a run must have alike.
  virtual std::string data_identity() const = 0;

  virtual Parameters& parameters() = 0;
  virtual int64_t width() const { return 512; }     // of the model, for the noam schedule
  virtual int64_t accumulate() const { return 1; }  // micro-batches a rank adds up in one step
  virtual const char* unit() const = 0;             // of targets, short: "tok", "img"
  // The style of the console's lines: "lockstep", "imagenet".
  virtual const char* log_style() const { return "lockstep"; }
  virtual bool counts_top5() const { return false; }  // LossParts::top5 is there
  // Whether only all ranks together can take a step: none may compute by itself (local steps).
  virtual bool computes_together() const { return false; }
  // The benchmark of MLPerf Training that is nearest: "resnet" (docs/run-folder.md#mlperf-logs).
  virtual const char* mlperf_benchmark() const { return "none"; }
  virtual int64_t shown_samples() const { return 3; }  // by default, after an evaluation

  virtual int64_t steps_in_epoch(int64_t epoch) = 0;
  // Targets of the whole step, over all its parts; equal on every rank without asking.
  virtual int64_t targets_in_step(int64_t epoch, int64_t step_in_epoch) = 0;
  // Sentence pairs, images, texts that there are to learn from ...
  virtual int64_t train_items() const = 0;
  // ... in a split, as evaluate() would see all of it (DataError: there is none) ...
  virtual int64_t items_of(const std::string& split) = 0;
  // ... and of a full step over all ranks; where steps are cut by tokens, the mean of an epoch.
  virtual double items_per_step() = 0;
  // Called from the prefetch thread; touches nothing that training changes. Null: an empty part.
  virtual std::unique_ptr<Batch> make_batch(const BatchPosition& position) = 0;

  // For fitting micro-batches to memory (train/parts/memory_fit.h). Load is what splits a step into
  // equal parts: source and target tokens, images. 0: steps of this task are not fitted.
  virtual int64_t largest_step_load() { return 0; }
  virtual int64_t smallest_load() const { return 64; }  // that a first trial takes
  // At least `load` of training data's shortest or longest items, again and again if need be.
  virtual std::unique_ptr<Batch> make_probe(int64_t load, ProbeItems items) { return nullptr; }
  virtual void set_accumulate(int64_t micro_batches) {}  // before the first batch is made

  // From now on; as opened before. A step that 16 bits were not enough for is repeated in fp32.
  virtual void compute_with(const Numerics& numerics) = 0;
  // step counts from 1 and seeds dropout. backward() must be started with Numerics::loss_scale.
  virtual LossParts loss(const Batch& batch, int64_t step) = 0;
  // Begins with the weights of another model. False: `file` is not of a kind that the task knows
  // better than by names and shapes. Throws DataError.
  virtual bool load_foreign_weights(const fs::path& file) { return false; }
  // The split that is evaluated while training, and the one that `lockstep evaluate` takes.
  virtual const char* tuning_split() const { return "dev"; }
  virtual const char* final_split() const { return "test"; }
  // What evaluate() can measure; the first says by default which checkpoint is best.
  virtual const std::vector<MetricKind>& metrics() const = 0;
  // Sharded over the ranks, each item once; equal on every rank, and the same digits for any number
  // of ranks. The present weights are used as they are.
  virtual Evaluation evaluate(World& world, const EvaluationRequest& request) = 0;

  // Copies into the run folder what using the model needs besides its weights.
  virtual void save_assets(const fs::path& run_folder) {}

  // Items of a split by what the configuration alone says of the data, before open(); 0: not known.
  virtual int64_t configured_items(const std::string& split) const { return 0; }

  // What the trained model can be used for (tasks/uses.h); null: not for that.
  virtual ModelFolderUse* model_folders() { return nullptr; }
  virtual TranslationUse* translating() { return nullptr; }
  virtual ImageUse* classifying_images() { return nullptr; }
  virtual TextUse* classifying_texts() { return nullptr; }
};

}  // namespace lockstep
