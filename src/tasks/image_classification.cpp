#include "tasks/image_classification.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "models/classifier_folder.h"
#include "nn/upload.h"
#include "tasks/classification_loss.h"

namespace lockstep {

namespace {

const char* const kClassesFile = "classes.json";
constexpr int64_t kStepsAhead = 32;  // whose images are fetched from other machines

struct ModelSection {
  ImageClassificationConfig& config;
  void describe(Fields& f) {
    f("source", &config.source, InputPath{},
      "what it begins with: a folder of transformers or timm (config.json, weights), or "
      "hf:OWNER/NAME[@REVISION] from the Hugging Face hub; it then says name, stem, width, patch, "
      "pool and norm_epsilon; empty: a new network");
    f("head", &config.head, OneOf{{"auto", "keep", "new"}},
      "the last layer of a source; auto: kept where the classes have the same names, or none; "
      "keep: wherever they are as many");
    config.model.describe(f);
    f("sync_batch_norm", &config.sync_batch_norm, Any{},
      "batch norms take their statistics over the images of all ranks; false: of each rank's own");
    f("average_flips", &config.average_flips, Any{},
      "evaluation takes the mean of the logits of an image and its mirror image");
  }
};

struct ImageLossSection {
  ImageClassificationConfig& config;
  void describe(Fields& f) {
    f("label_smoothing", &config.label_smoothing, Between{0, 1},
      "share of the target's probability that is spread over all classes");
  }
};

// Reads the classes of a run, or of an exported model.
std::vector<std::string> saved_classes(const fs::path& folder) {
  const fs::path file = folder / kClassesFile;
  if (!fs::exists(file) && is_classifier_folder(folder)) {
    std::vector<std::string> classes = read_classifier_folder(folder).classes;
    if (!classes.empty()) return classes;
    DataError error("{}: no id2label: it was not taught classes",
                    (folder / "config.json").string());
    error.set_advice("training can begin with it: model.source=" + folder.string());
    throw error;
  }
  try {
    return nlohmann::json::parse(read_file(file)).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{}: not a list of classes: {}", file.string(), error.what());
  }
}

}  // namespace

void ImageBatchConfig::describe(Fields& f) {
  f("images", &images, AtLeast{0},
    "images of one optimizer step, all ranks together; 0: by per_rank");
  per_rank.describe(f, "images");
  f("accumulate", &accumulate, AtLeast{1},
    "micro-batches that each rank adds up in one step; batch norms see each by itself");
  f("drop_last", &drop_last, Any{}, "leave out the last step of an epoch when it is not full");
  f("evaluation_images", &evaluation_images, AtLeast{1}, "images evaluated together");
  shares.describe(f);
}

std::string ImageClassification::equal_shares_only() const {
  if (config_.sync_batch_norm) {
    return "with model.sync_batch_norm all ranks compute together, each the same number of "
           "micro-batches";
  }
  if (config_.images.share == "machine") {
    return "with images.share=machine a machine's part of a step is that of its images";
  }
  if (config_.images.cache_bytes > 0 && config_.batch.shares.follows_speed()) {
    return "with images.cache_bytes the images of coming steps are kept for shares that do not "
           "change, as those of a list";
  }
  return "";
}

void ResolutionConfig::describe(Fields& f) {
  f("start", &start, AtLeast{0},
    "pixels of a side in the first epochs of training, images.size later; 0: images.size always");
  f("start_epoch", &start_epoch, AtLeast{0}, "from this epoch (the first is 0) on it grows");
  f("end_epoch", &end_epoch, AtLeast{0}, "from this epoch on it is images.size");
  f("multiple", &multiple, AtLeast{1}, "in between it is a multiple of this");
  f("evaluation", &evaluation, AtLeast{0}, "pixels of a side in evaluation; 0: images.size");
}

int64_t ResolutionConfig::training_size(int64_t epoch, int64_t size) const {
  if (start == 0 || epoch >= end_epoch) return size;
  if (epoch <= start_epoch) return start;
  const double way = static_cast<double>(epoch - start_epoch) /
                     static_cast<double>(std::max<int64_t>(1, end_epoch - start_epoch));
  const double exact = static_cast<double>(start) + way * static_cast<double>(size - start);
  const auto each = static_cast<double>(multiple);
  return std::clamp(static_cast<int64_t>(std::nearbyint(exact / each) * each),
                    std::min(start, size), std::max(start, size));
}

void ImageClassification::describe(Fields& f) {
  f.section("images", config_.images, "what it learns from, and how it sees it");
  f.section("resolution", config_.resolution, "pixels by epoch");
  ModelSection model{config_};
  f.section("model", model, "the network");
  ImageLossSection loss{config_};
  f.section("loss", loss, "what is minimised");
  f.section("batch", config_.batch, "what makes a step");
}

void ImageClassification::open(const TaskContext& context) {
  context_ = context;
  const fs::path source = choose_network();
  check_images_config(config_.images);
  if (context.run_folder.empty()) {
    open_data();
  } else {
    classes_ = saved_classes(context.run_folder);
  }
  positive_class();  // throws for an unknown name
  model_ = make_image_model(config_.model, std::ssize(classes_), config_.images.size, parameters_);
  parameters_.allocate(context.device, context.numerics.compute, context.seed);
  if (config_.sync_batch_norm && context.world != nullptr && context.world->size() > 1) {
    sum_over_ranks_ = [world = context.world](torch::Tensor& sums) { world->all_reduce_sum(sums); };
  }
  if (!source.empty()) begin_with(source);
  check_sizes();
}

// Opens the training data, and checks that the data to evaluate on fits it.
void ImageClassification::open_data() {
  const ImagesConfig& images = config_.images;
  const bool apart = images.share == "machine";
  train_ = std::make_unique<SharedImages>(
      context_.world, images, images.train_split,
      apart ? SharedImages::Reading::kOwn : SharedImages::Reading::kAll);
  classes_ = train_->classes();
  ImageLoaderOptions options{.seed = context_.seed,
                             .threads = loader_threads(),
                             .compute = context_.numerics.compute,
                             .device = context_.device};
  ImageBatchConfig& batch = config_.batch;
  step_images_ = batch.per_rank.is_on() ? batch.per_rank.settle(context_.ranks, batch.accumulate)
                                        : batch.images;
  const ImageEpochs::Options steps{context_.seed, step_images_};
  if (apart) {
    ImagePlaces places = train_->divide();
    const int rank = context_.world == nullptr ? 0 : context_.world->rank();
    options.partners = places.images[places.of_rank[rank]];
    epochs_ = std::make_unique<ImageEpochs>(std::move(places), steps);
  } else {
    epochs_ = std::make_unique<ImageEpochs>(train_->size(), steps);
  }
  train_loader_ = std::make_unique<ImageLoader>(*train_, images, options);
  if (!context_.evaluated_split.empty()) split(context_.evaluated_split, context_.world);
  check_steps();
}

void ImageClassification::check_steps() {
  const ImageBatchConfig& batch = config_.batch;
  const int64_t ranks = context_.world == nullptr ? 1 : context_.world->size();
  if (step_images_ < ranks * batch.accumulate) {
    throw ConfigError(
        "batch.images: {} image{} a step are too few for {} rank{} with {} micro-batch{} each: "
        "expected at least {}",
        step_images_, step_images_ == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s", batch.accumulate,
        batch.accumulate == 1 ? "" : "es", ranks * batch.accumulate);
  }
  if (steps_in_epoch(0) == 0) {
    throw ConfigError(
        "batch.images: {}, but the split {} has {} images: no step of an epoch is "
        "full; a smaller batch, or batch.drop_last=false",
        step_images_, config_.images.train_split, train_->size());
  }
  if (!config_.sync_batch_norm || ranks == 1) return;
  for (int64_t step = 0; step < epochs_->full_steps(0); ++step) {
    if (epochs_->smallest_part(0, step, ranks * batch.accumulate) > 0) continue;
    throw ConfigError(
        "batch.images: {} are too few for images.share=machine: in step {} of an epoch a rank has "
        "no image, but with model.sync_batch_norm none can sit out a step",
        step_images_, step);
  }
}

// Tries now the sizes that training will reach only after hours.
void ImageClassification::check_sizes() const {
  const ResolutionConfig& r = config_.resolution;
  std::vector<int64_t> sizes;
  if (r.start > 0) sizes.push_back(r.start);
  if (r.evaluation > 0) sizes.push_back(r.evaluation);
  for (int64_t size : sizes) {
    if (size == config_.images.size) continue;
    torch::InferenceMode inference;
    evaluated_logits(torch::zeros({1, 3, size, size}, context_.device));
  }
}

// Lines that a person can compare: differing classes are named.
std::string ImageClassification::data_identity() const {
  std::string text;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    text += fmt::format("class {} = {}\n", c, classes_[c]);
  }
  auto add = [&](const std::string& name, const ImageSet& set) {
    text +=
        fmt::format("images of {0} = {1}\nfiles of {0} = {2}\n", name, set.size(), set.identity());
  };
  add(config_.images.train_split, *train_);
  for (const auto& [name, split] : splits_) add(name, *split.set);
  return text;
}

void ImageClassification::save_assets(const fs::path& run_folder) {
  write_file(run_folder / kClassesFile, nlohmann::json(classes_).dump(1) + "\n");
  save_network(run_folder);
}

// A last step that is not full is left out if drop_last is set or, when batch norms share
// statistics, if it lacks an image for some part: all ranks must take part.
int64_t ImageClassification::steps_in_epoch(int64_t epoch) {
  const int64_t full = epochs_->full_steps(epoch);
  bool last = epochs_->images_in_step(epoch, full) > 0 && !config_.batch.drop_last;
  if (last && config_.sync_batch_norm && context_.world != nullptr && context_.world->size() > 1) {
    last = epochs_->smallest_part(epoch, full, context_.world->size() * accumulate()) > 0;
  }
  return full + (last ? 1 : 0);
}

int64_t ImageClassification::targets_in_step(int64_t epoch, int64_t step_in_epoch) {
  return epochs_->images_in_step(epoch, step_in_epoch);
}

// Tells what the ranks of this place will read in the coming steps, so that it is fetched before.
void ImageClassification::fetch_ahead(const BatchPosition& position) {
  if (!train_->fetches()) return;
  if (ahead_epoch_ < 0) {
    ahead_epoch_ = position.epoch;
    ahead_step_ = position.step_in_epoch;
  }
  int64_t told = ahead_step_ - position.step_in_epoch;  // steps from this one on
  for (int64_t epoch = position.epoch; epoch < ahead_epoch_; ++epoch) told += steps_in_epoch(epoch);
  const std::vector<int> neighbours = train_->neighbours();
  for (; told < kStepsAhead; ++told) {
    for (int64_t part = 0; part < position.parts.count(); ++part) {
      const int rank = position.parts.rank_of(part);
      if (!std::binary_search(neighbours.begin(), neighbours.end(), rank)) continue;
      train_->expect(train_loader_->read_for(
          epochs_->part(ahead_epoch_, ahead_step_, part, position.parts), ahead_epoch_));
    }
    if (++ahead_step_ < steps_in_epoch(ahead_epoch_)) continue;
    ++ahead_epoch_;
    ahead_step_ = 0;
  }
}

std::unique_ptr<Batch> ImageClassification::make_batch(const BatchPosition& position) {
  fetch_ahead(position);
  const std::vector<int64_t> indices =
      epochs_->part(position.epoch, position.step_in_epoch, position.part, position.parts);
  if (indices.empty()) return nullptr;
  auto batch = std::make_unique<ImageBatch>();
  batch->tensors = train_loader_->train_batch(
      indices, position.epoch,
      config_.resolution.training_size(position.epoch, config_.images.size));
  name_broken(*train_, indices, batch->tensors);
  if (batch->tensors.broken == std::ssize(indices)) {
    if (sum_over_ranks_ == nullptr) return nullptr;
    throw DataError(
        "all {} images of a rank's share of a step are broken, the first is {}; with "
        "model.sync_batch_norm no rank can sit out a step",
        indices.size(), train_->name(indices.front()));
  }
  batch->items = batch->targets = batch->tensors.images.size(0);
  batch->rows = upload(batch->tensors.indices, context_.device);
  return batch;
}

void ImageClassification::name_broken(const ImageSet& set, std::span<const int64_t> wanted,
                                      const ImageTensors& made) {
  if (made.broken == 0) return;
  const int64_t* kept = made.indices.const_data_ptr<int64_t>();
  const int64_t* end = kept + made.indices.numel();
  std::lock_guard lock(mutex_);
  for (int64_t index : wanted) {
    if (kept != end && *kept == index) {
      ++kept;  // the kept ones are in the wanted order
    } else if (broken_.insert(set.name(index)).second) {
      log_warning("{} cannot be decoded and is left out", set.name(index));
    }
  }
}

// The first steps of an epoch are full.
int64_t ImageClassification::largest_step_load() { return epochs_->images_in_step(0, 0); }

// The contents of the pixels do not affect the memory that a step takes.
std::unique_ptr<Batch> ImageClassification::make_probe(int64_t load, ProbeItems) {
  auto batch = std::make_unique<ImageBatch>();
  const int64_t size = std::max(config_.images.size, config_.resolution.start);
  const auto options = torch::TensorOptions(context_.device);
  batch->tensors.images =
      torch::zeros({load, 3, size, size}, options.dtype(context_.numerics.compute))
          .contiguous(torch::MemoryFormat::ChannelsLast);
  batch->tensors.labels = torch::zeros({load}, options.dtype(torch::kInt64));
  batch->rows = torch::arange(load, options.dtype(torch::kInt64));
  batch->items = batch->targets = load;
  batch->is_probe = true;
  return batch;
}

LossParts ImageClassification::loss(const Batch& batch, int64_t step) {
  const auto& images = static_cast<const ImageBatch&>(batch);
  const ImageTensors& tensors = images.tensors;
  ImageForward how{.numerics = context_.numerics,
                   .training = true,
                   .seed = context_.seed,
                   .step = step,
                   .rows = &images.rows};
  if (!images.is_probe) how.sum_over_ranks = sum_over_ranks_;  // ranks probe different sizes
  // The pixels are in the run's number format; a repeated step computes in fp32.
  const torch::Tensor pixels = tensors.images.to(context_.numerics.compute);
  return classification_loss(model_->logits(pixels, how),
                             {tensors.labels, tensors.other_labels, tensors.weights},
                             config_.label_smoothing);
}

std::unique_ptr<Task> make_image_classification() {
  return std::make_unique<ImageClassification>();
}

}  // namespace lockstep
