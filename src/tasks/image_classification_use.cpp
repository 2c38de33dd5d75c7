// Implements the uses of a network that classifies images: evaluation, and classifying files.
#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/log.h"
#include "base/prefetcher.h"
#include "metrics/classification_scores.h"
#include "tasks/classification_figures.h"
#include "tasks/classification_loss.h"
#include "tasks/image_classification.h"

namespace lockstep {

namespace {

// The sums that a batch of images adds to an evaluation.
enum Sum { kLoss, kNll, kCorrect, kTop5, kImages, kBroken, kSums };

// Returns `items` numbers of [0, total), evenly spread, because neighbours in a
// split are of one class.
std::vector<int64_t> spread(int64_t items, int64_t total) {
  std::vector<int64_t> out(static_cast<std::size_t>(items));
  for (int64_t i = 0; i < items; ++i) out[i] = i * total / items;
  return out;
}

// What the evaluated images were taken for, by class.
class ClassTally {
 public:
  // The whole matrix is only counted if it is wanted: it grows with the square of the classes.
  ClassTally(const std::vector<std::string>& classes, bool matrix) : counts_(classes.size()) {
    if (matrix) confusion_.emplace(classes);
  }

  // logits [n, classes], labels int64 [n].
  void count(const torch::Tensor& logits, const torch::Tensor& labels) {
    const torch::Tensor taken = logits.argmax(1).to(torch::kCPU), host = labels.to(torch::kCPU);
    const auto* taken_for = taken.const_data_ptr<int64_t>();
    const auto* label = host.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < taken.numel(); ++i) {
      ++counts_[static_cast<std::size_t>(label[i])].items;
      ++counts_[static_cast<std::size_t>(taken_for[i])].taken;
      if (label[i] == taken_for[i]) ++counts_[static_cast<std::size_t>(label[i])].right;
      if (confusion_) ++confusion_->at(label[i], taken_for[i]);
    }
  }

  // Sums over the ranks in doubles, which hold whole numbers exactly. Collective.
  void share(World& world) {
    std::vector<double> sums;
    for (const ClassCounts& of : counts_) {
      for (int64_t count : {of.items, of.taken, of.right}) {
        sums.push_back(static_cast<double>(count));
      }
    }
    if (confusion_) sums.insert(sums.end(), confusion_->counts.begin(), confusion_->counts.end());
    world.all_reduce_sum(std::span<double>(sums));
    auto next = [&, at = std::size_t{0}]() mutable { return static_cast<int64_t>(sums[at++]); };
    for (ClassCounts& of : counts_) {
      of.items = next();
      of.taken = next();
      of.right = next();
    }
    if (!confusion_) return;
    for (int64_t& count : confusion_->counts) count = next();
  }

  const std::vector<ClassCounts>& counts() const { return counts_; }
  std::optional<Confusion> take_confusion() { return std::move(confusion_); }

 private:
  std::vector<ClassCounts> counts_;
  std::optional<Confusion> confusion_;
};

// Collects what some of the evaluated images were taken for.
class SampleAnswers {
 public:
  // Selects at most `wanted` of the images, evenly spread.
  SampleAnswers(int64_t wanted, const std::vector<int64_t>& images) {
    const int64_t total = std::ssize(images);
    for (int64_t place : spread(std::min(wanted, total), total)) images_.push_back(images[place]);
    taken_.resize(images_.size());
  }

  // Notes a batch: `indices` int64 [n] on the CPU, logits [n, classes].
  void note(const torch::Tensor& indices, const torch::Tensor& logits) {
    const auto* first = indices.const_data_ptr<int64_t>();
    const auto* end = first + indices.numel();
    for (std::size_t k = 0; k < images_.size(); ++k) {
      const auto* found = std::find(first, end, images_[k]);
      if (found == end) continue;
      taken_[k] = static_cast<double>(1 + logits[found - first].argmax().item<int64_t>());
    }
  }

  // Combines the ranks' answers, as each image was seen by one rank. Collective.
  void share(World& world) {
    if (!taken_.empty()) world.all_reduce_sum(std::span<double>(taken_));
  }

  // Calls f(image, class that it was taken for) for each image that could be decoded.
  template <typename F>
  void for_each(const F& f) const {
    for (std::size_t k = 0; k < images_.size(); ++k) {
      if (taken_[k] > 0) f(images_[k], static_cast<int64_t>(taken_[k]) - 1);
    }
  }

 private:
  std::vector<int64_t> images_;
  std::vector<double> taken_;  // by image: 1 + the class, 0 if none is known
};

// REQUIRES that there were images.
Evaluation figures_of(const std::array<double, kSums>& sums, const ClassificationScores& scores,
                      int64_t classes, const std::string& split) {
  Evaluation out;
  out.metrics["acc1"] = 100 * sums[kCorrect] / sums[kImages];
  out.metrics["acc5"] = 100 * sums[kTop5] / sums[kImages];
  out.metrics["loss"] = sums[kLoss] / sums[kImages];
  out.metrics["nll"] = sums[kNll] / sums[kImages];
  add_class_metrics(scores, classes, out);
  out.summary = fmt::format(
      "{}  Acc@1 {:.3f}  Acc@5 {:.3f}  precision {:.4f}  recall {:.4f}  f1 {:.4f}  "
      "loss {:.4f}",
      split, out.metrics["acc1"], out.metrics["acc5"], out.metrics["precision"],
      out.metrics["recall"], out.metrics["f1"], out.metrics["loss"]);
  if (sums[kBroken] > 0) {
    out.metrics["broken"] = sums[kBroken];
    out.summary += fmt::format("  {:.0f} broken left out", sums[kBroken]);
  }
  return out;
}

// Says which images the ranks of this machine will ask for: all at once, since the limit of what is
// kept decides how far it gets.
template <typename Batch>
void expect_of_neighbours(SharedImages& set, int ranks, int64_t batches, const Batch& batch) {
  const std::vector<int> neighbours = set.neighbours();
  for (int64_t b = 0; b < batches; ++b) {
    const int rank = static_cast<int>(b % ranks);
    if (std::binary_search(neighbours.begin(), neighbours.end(), rank)) set.expect(batch(b));
  }
}

struct BatchPlace {
  int64_t number, batches;  // of all ranks
};

// Tells how far this rank's own batches are.
void tell_progress(const World& world, const EvaluationRequest& request, const BatchPlace& at,
                   const double* sums) {
  if (!request.progress) return;
  request.progress({.batch = at.number / world.size(),
                    .batches = (at.batches - world.rank() + world.size() - 1) / world.size(),
                    .items = static_cast<int64_t>(sums[kImages]),
                    .correct = static_cast<int64_t>(sums[kCorrect]),
                    .top5 = static_cast<int64_t>(sums[kTop5]),
                    .loss = sums[kLoss]});
}

DataError none_decoded(const std::string& data, int64_t items, const std::string& split) {
  return DataError("{}: not one of the {} images of {} can be decoded", data, items, split);
}

void put_sums(const LossParts& batch, double* sums) {
  sums[kLoss] = batch.loss.item<double>();
  sums[kNll] = batch.nll.item<double>();
  sums[kCorrect] = static_cast<double>(batch.correct.item<int64_t>());
  sums[kTop5] = static_cast<double>(batch.top5.item<int64_t>());
}

// Adds the sums of the batches, in their order: so the result has the same bits whichever rank made
// them.
std::array<double, kSums> added(const std::vector<double>& parts) {
  std::array<double, kSums> out{};
  for (std::size_t i = 0; i < parts.size(); ++i) out[i % kSums] += parts[i];
  return out;
}

}  // namespace

const std::vector<MetricKind>& ImageClassification::metrics() const {
  static const std::vector<MetricKind> kinds = [] {
    std::vector<MetricKind> out{{"acc1", true, 100}, {"acc5", true, 100}};
    append_class_metrics(out);
    out.insert(out.end(), {{"loss", false}, {"nll", false}});
    return out;
  }();
  return kinds;
}

int64_t ImageClassification::loader_threads() const {
  return config_.images.workers > 0 ? config_.images.workers : at::get_num_threads();
}

int64_t ImageClassification::positive_class() const {
  return positive_label(classes_, config_.images.positive, "images.positive");
}

int64_t ImageClassification::evaluation_size() const {
  return config_.resolution.evaluation > 0 ? config_.resolution.evaluation : config_.images.size;
}

// CPUs compute fp16 through fp32; where nothing is trained, the exact weights serve as well.
Numerics ImageClassification::use_numerics() const {
  Numerics numerics = context_.numerics;
  if (numerics.compute == at::kHalf && context_.device.is_cpu()) numerics.compute = at::kFloat;
  return numerics;
}

int64_t ImageClassification::configured_items(const std::string& name) const {
  const std::string& data = config_.images.data;
  return data.empty() ? 0 : count_images(data, name);
}

ImageClassification::Split& ImageClassification::split(const std::string& name, World* world) {
  auto found = splits_.find(name);
  if (found != splits_.end()) return found->second;
  Split opened{.set = std::make_unique<SharedImages>(world, config_.images, name)};
  if (train_ != nullptr) {
    check_same_classes(*train_, *opened.set);
  } else if (opened.set->classes() != classes_) {
    throw DataError("{}: {} has {} classes, others than the {} that the network was trained on",
                    config_.images.data, name, opened.set->classes().size(), classes_.size());
  }
  opened.loader =
      std::make_unique<ImageLoader>(*opened.set, config_.images,
                                    ImageLoaderOptions{.seed = context_.seed,
                                                       .threads = loader_threads(),
                                                       .compute = use_numerics().compute,
                                                       .device = context_.device});
  return splits_.emplace(name, std::move(opened)).first->second;
}

torch::Tensor ImageClassification::evaluated_logits(const torch::Tensor& images) const {
  const Numerics numerics = use_numerics();
  const torch::Tensor pixels = images.to(numerics.compute, /*non_blocking=*/false, /*copy=*/false,
                                         torch::MemoryFormat::ChannelsLast);
  const ImageForward how{.numerics = numerics, .seed = context_.seed};
  const torch::Tensor logits = model_->logits(pixels, how).to(torch::kFloat);
  if (!config_.average_flips) return logits;
  const torch::Tensor flipped = pixels.flip(3).contiguous(torch::MemoryFormat::ChannelsLast);
  return (logits + model_->logits(flipped, how)) / 2;
}

Evaluation ImageClassification::evaluate(World& world, const EvaluationRequest& request) {
  torch::InferenceMode inference;
  const Split& from = split(request.split, &world);
  const int64_t total = from.set->size();
  const int64_t items = request.limit > 0 ? std::min(request.limit, total) : total;
  const std::vector<int64_t> indices = spread(items, total);
  const int64_t each = config_.batch.evaluation_images;
  const int64_t batches = (items + each - 1) / each;
  // Images of the b-th batch. Batches do not depend on the ranks; each rank
  // takes every size-th one.
  auto batch = [&](int64_t b) {
    return std::span(indices).subspan(b * each, std::min(each, items - b * each));
  };
  if (from.set->fetches()) expect_of_neighbours(*from.set, world.size(), batches, batch);
  int64_t next = world.rank();
  Prefetcher<ImageTensors> decoded(
      [&]() -> ImageTensors {
        if (next >= batches) return {};
        const std::span<const int64_t> images = batch(next);
        next += world.size();
        ImageTensors made = from.loader->eval_batch(images, evaluation_size());
        name_broken(*from.set, images, made);
        return made;
      },
      2);
  ClassTally tally(classes_, request.confusion);
  SampleAnswers answers(request.samples, indices);
  std::vector<double> parts(static_cast<std::size_t>(kSums * batches));
  for (int64_t b = world.rank(); b < batches && !request.is_stopped(); b += world.size()) {
    const std::optional<ImageTensors> next_images =
        decoded.next_unless([&] { return request.is_stopped(); });
    if (!next_images) break;
    const ImageTensors& images = *next_images;
    double* sums = &parts[static_cast<std::size_t>(kSums * b)];
    sums[kBroken] = static_cast<double>(images.broken);
    sums[kImages] = static_cast<double>(std::ssize(batch(b)) - images.broken);
    if (sums[kImages] == 0) continue;
    const torch::Tensor logits = evaluated_logits(images.images);
    const LossParts r = classification_loss(logits, {images.labels}, config_.label_smoothing);
    put_sums(r, sums);
    tally.count(logits, images.labels);
    answers.note(images.indices, logits);
    tell_progress(world, request, {b, batches}, sums);
  }
  if (breaks_off(world, request)) return {.broken_off = true};
  world.all_reduce_sum(std::span<double>(parts));
  tally.share(world);
  answers.share(world);
  const std::array<double, kSums> sums = added(parts);
  if (sums[kImages] == 0) throw none_decoded(config_.images.data, items, request.split);
  Evaluation out = figures_of(sums, classification_scores(tally.counts(), positive_class()),
                              std::ssize(classes_), request.split);
  answers.for_each([&](int64_t image, int64_t taken_for) {
    const bool picture = request.pictures && world.is_leader();
    out.samples.push_back(sample(*from.set, image, taken_for, picture));
  });
  out.confusion = tally.take_confusion();
  return out;
}

Sample ImageClassification::sample(const ImageSet& set, int64_t index, int64_t taken_for,
                                   bool picture) const {
  Sample out{set.name(index), classes_[set.label(index)], classes_[taken_for]};
  if (picture) {
    std::vector<std::byte> space;
    out.picture = std::make_shared<const RgbImage>(
        evaluation_pixels(set.bytes(index, space), out.source, config_.images, evaluation_size()));
  }
  return out;
}

torch::Tensor ImageClassification::read_image(const fs::path& file) const {
  const std::string bytes = read_file(file);
  return evaluation_image(std::as_bytes(std::span(bytes)), file.string(), config_.images,
                          evaluation_size(), use_numerics().compute);
}

std::vector<std::vector<ClassProbability>> ImageClassification::classify(
    const torch::Tensor& images, int64_t most) const {
  torch::InferenceMode inference;
  return most_probable(evaluated_logits(images.to(context_.device)).softmax(1), classes_, most);
}

}  // namespace lockstep
