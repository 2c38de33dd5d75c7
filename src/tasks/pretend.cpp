#include "tasks/pretend.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <thread>

#include "base/error.h"
#include "base/keyed_random.h"
#include "base/text.h"

namespace lockstep {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using SleepClock = std::chrono::steady_clock;

constexpr int64_t kSampledWeights = 8;  // of a layer: all have the same gradient
constexpr double kGradientUnit = 1.0 / 1024, kLossUnit = 1.0 / 4096;

struct PretendedItems : Batch {
  int64_t first = 0;  // item; `items` of them
};

double rounded(double value, double unit) { return std::nearbyint(value / unit) * unit; }

std::chrono::nanoseconds milliseconds(double value) {
  return std::chrono::nanoseconds(static_cast<int64_t>(value * 1e6));
}

// Returns what an item adds to the distance of every layer, in [-1/4, 1/4).
double noise_of(uint64_t seed, int64_t item) {
  KeyedRandom random(combine_keys(seed, static_cast<uint64_t>(item)));
  return random.uniform(-0.25, 0.25);
}

// Returns half the mean square of the layers' distances, as an item with that noise sees them.
double loss_of_item(const std::vector<double>& distances, double noise) {
  double sum = 0;
  for (double distance : distances) sum += (distance + noise) * (distance + noise);
  return rounded(sum / static_cast<double>(2 * distances.size()), kLossUnit);
}

int64_t count_of(SleepClock::time_point time) { return time.time_since_epoch().count(); }

void sleep_until(int64_t count) {
  std::this_thread::sleep_until(SleepClock::time_point(SleepClock::duration(count)));
}

// The times are absolute, so that what is computed on the way belongs to the time pretended.
struct LayerTimes {
  SleepClock::time_point forward_ends, backward_ends;
};

// A layer hands the loss on; its backward pass gives every weight the same gradient.
struct PretendedLayer : torch::autograd::Function<PretendedLayer> {
  // loss, result: fp32 scalars. weight: of any shape.
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& loss,
                               const torch::Tensor& weight, double gradient,
                               const LayerTimes& times) {
    ctx->saved_data["gradient"] = gradient;
    ctx->saved_data["until"] = count_of(times.backward_ends);
    ctx->saved_data["sizes"] = weight.sizes().vec();
    sleep_until(count_of(times.forward_ends));
    return loss.clone();
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const torch::Tensor gradient = grads[0] * ctx->saved_data["gradient"].toDouble();
    sleep_until(ctx->saved_data["until"].toInt());
    return {grads[0], gradient.expand(ctx->saved_data["sizes"].toIntVector()), {}, {}};
  }
};

template <typename Number>
bool read_all(std::string_view text, Number& out) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

}  // namespace

double pretended_slowness(const std::vector<std::string>& entries, int rank) {
  double out = 1;
  for (const std::string& entry : entries) {
    const std::size_t colon = entry.find(':');
    int named = 0;
    double factor = 0;
    if (colon == std::string::npos || !read_all(std::string_view(entry).substr(0, colon), named) ||
        !read_all(std::string_view(entry).substr(colon + 1), factor) || named < 0 ||
        !(factor > 0) || !std::isfinite(factor)) {
      throw ConfigError(
          "pretend.slow: expected RANK:FACTOR such as \"3:2.0\", a factor above 0, got \"{}\"",
          entry);
    }
    if (named == rank) out = factor;
  }
  return out;
}

void PretendModelConfig::describe(Fields& f) {
  f("parameters", &parameters, AtLeast{1}, "weights; gradients take 4 bytes each");
  f("layers", &layers, AtLeast{1}, "among which the weights are divided, each a tensor");
}

void PretendConfig::describe(Fields& f) {
  f("step_milliseconds", &step_milliseconds, AtLeast{0},
    "that a rank pretends to compute for its equal share of batch.items; other shares in "
    "proportion");
  f("backward_share", &backward_share, Between{0, 1}, "share of that time in backward passes");
  f("jitter", &jitter, Between{0, 1}, "times differ by up to this share, by rank and step");
  f("slow", &slow, Any{}, "ranks that take longer, and how many times: [\"3:2.0\"]");
  f("batch_milliseconds", &batch_milliseconds, AtLeast{0}, "that making a micro-batch takes");
  f("evaluation_milliseconds", &evaluation_milliseconds, AtLeast{0},
    "of a whole evaluation, divided among the ranks");
  f("train_items", &train_items, AtLeast{1}, "items of an epoch");
  f("evaluation_items", &evaluation_items, AtLeast{1}, "items of each of the splits dev and test");
}

void PretendBatchConfig::describe(Fields& f) {
  f("items", &items, AtLeast{0}, "items of one optimizer step, all ranks together; 0: by per_rank");
  per_rank.describe(f, "items");
  f("accumulate", &accumulate, AtLeast{1}, "micro-batches that each rank adds up in one step");
  shares.describe(f);
}

void Pretend::describe(Fields& f) {
  f.section("model", model_, "the weights");
  f.section("pretend", pretend_, "how long what takes");
  f.section("batch", batch_, "what makes a step");
}

void Pretend::open(const TaskContext& context) {
  if (context.world != nullptr) {
    rank_ = context.world->rank();
    ranks_ = context.world->size();
  }
  if (model_.parameters < model_.layers) {
    throw ConfigError("model.parameters: {} are too few for model.layers = {}", model_.parameters,
                      model_.layers);
  }
  steps_ =
      EpochSteps(batch_.per_rank.is_on() ? batch_.per_rank.settle(context.ranks, batch_.accumulate)
                                         : batch_.items);
  if (context.run_folder.empty() && steps_.size() < ranks_ * batch_.accumulate) {
    throw ConfigError(
        "batch.items: {} a step are too few for {} rank{} with {} micro-batch{} each: expected at "
        "least {}",
        steps_.size(), ranks_, ranks_ == 1 ? "" : "s", batch_.accumulate,
        batch_.accumulate == 1 ? "" : "es", ranks_ * batch_.accumulate);
  }
  slowness_ = pretended_slowness(pretend_.slow, rank_);
  device_ = context.device;
  seed_ = context.seed;
  for (int64_t l = 0; l < model_.layers; ++l) {
    const int64_t begin = model_.parameters * l / model_.layers;
    const int64_t end = model_.parameters * (l + 1) / model_.layers;
    layers_.push_back(parameters_.add(fmt::format("layer.{}", l), {end - begin}, zeros()));
  }
  parameters_.allocate(context.device, context.numerics.compute, context.seed);
}

std::string Pretend::data_identity() const {
  return fmt::format("{} pretended items and {} to evaluate", pretend_.train_items,
                     pretend_.evaluation_items);
}

int64_t Pretend::steps_in_epoch(int64_t epoch) {
  const int64_t full = steps_.full_steps(epoch, pretend_.train_items);
  return full + (targets_in_step(epoch, full) > 0 ? 1 : 0);
}

int64_t Pretend::targets_in_step(int64_t epoch, int64_t step_in_epoch) {
  return steps_.range(epoch, step_in_epoch, pretend_.train_items).count();
}

int64_t Pretend::items_of(const std::string& split) {
  first_item_of(split);
  return pretend_.evaluation_items;
}

// The items to evaluate follow those to learn from.
int64_t Pretend::first_item_of(const std::string& split) const {
  if (split == "dev") return pretend_.train_items;
  if (split == "test") return pretend_.train_items + pretend_.evaluation_items;
  throw DataError("no split \"{}\"{}: expected dev or test", split,
                  did_you_mean(split, {"dev", "test"}));
}

std::unique_ptr<Batch> Pretend::make_batch(const BatchPosition& at) {
  std::this_thread::sleep_for(milliseconds(pretend_.batch_milliseconds));
  const auto step = steps_.range(at.epoch, at.step_in_epoch, pretend_.train_items);
  const auto [begin, end] = at.parts.range(step.count(), at.part);
  if (begin == end) return nullptr;
  auto batch = std::make_unique<PretendedItems>();
  batch->first = step.begin + begin;
  batch->items = batch->targets = end - begin;
  return batch;
}

std::vector<double> Pretend::distances() const {
  torch::NoGradGuard no_grad;
  std::vector<double> out;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const torch::Tensor& value = layers_[l]->value;
    const int64_t stride = std::max<int64_t>(1, layers_[l]->numel / kSampledWeights);
    const auto mean = value.slice(0, 0, value.size(0), stride).mean().item<double>();
    out.push_back(mean - 1 / static_cast<double>(l + 1));
  }
  return out;
}

std::chrono::nanoseconds Pretend::time_of(int64_t items, int64_t step) const {
  const double share =
      static_cast<double>(items * ranks_) / static_cast<double>(steps_.size());  // 1: an equal one
  KeyedRandom random(
      combine_keys(seed_, combine_keys(static_cast<uint64_t>(rank_), static_cast<uint64_t>(step))));
  const double jitter = 1 + random.uniform(-pretend_.jitter, pretend_.jitter);
  return milliseconds(pretend_.step_milliseconds * share * slowness_ * jitter);
}

LossParts Pretend::loss(const Batch& batch, int64_t step) {
  const auto begin = SleepClock::now();
  const auto& items = static_cast<const PretendedItems&>(batch);
  const std::vector<double> away = distances();
  double loss = 0, noise_sum = 0;
  int64_t close = 0;
  for (int64_t i = items.first; i < items.first + items.items; ++i) {
    const double noise = rounded(noise_of(seed_, i), kGradientUnit);
    const double of_item = loss_of_item(away, noise);
    loss += of_item;
    noise_sum += noise;
    if (of_item < 0.01) ++close;
  }

  const auto options = torch::TensorOptions(device_);
  torch::Tensor out = torch::full({}, loss, options.dtype(torch::kFloat32));
  const torch::Tensor nll = out.clone();
  // The power of two next below 1 / sqrt(weights): the norm of the gradient is about a distance.
  const double scale =
      std::exp2(-std::ceil(0.5 * std::log2(static_cast<double>(model_.parameters))));
  const auto time = time_of(items.items, step);
  const auto forward =
      milliseconds(static_cast<double>(time.count()) / 1e6 * (1 - pretend_.backward_share));
  const auto layers = std::ssize(layers_);
  for (std::ptrdiff_t l = 0; l < layers; ++l) {
    const auto place = static_cast<std::size_t>(l);
    const double distance = rounded(away[place], kGradientUnit);
    const double gradient = (distance * static_cast<double>(items.items) + noise_sum) * scale;
    const LayerTimes times{
        .forward_ends = begin + forward * (l + 1) / layers,
        .backward_ends = begin + forward + (time - forward) * (layers - l) / layers};
    out = PretendedLayer::apply(out, layers_[place]->value, gradient, times);
  }
  return {.loss = out,
          .nll = nll,
          .correct = torch::full({}, close, options.dtype(torch::kInt64)),
          .top5 = {}};
}

const std::vector<MetricKind>& Pretend::metrics() const {
  static const std::vector<MetricKind> kinds = {{"loss", false}};
  return kinds;
}

Evaluation Pretend::evaluate(World& world, const EvaluationRequest& request) {
  const int64_t first = first_item_of(request.split), all = pretend_.evaluation_items;
  const int64_t items = request.limit > 0 ? std::min(request.limit, all) : all;
  const auto begin = SleepClock::now();
  const auto each = milliseconds(pretend_.evaluation_milliseconds * slowness_ *
                                 static_cast<double>(world.size()) / static_cast<double>(all));
  const std::vector<double> away = distances();
  std::vector<double> losses(static_cast<std::size_t>(items));  // by item
  int64_t done = 0;
  for (int64_t i = world.rank(); i < items; i += world.size()) {
    losses[static_cast<std::size_t>(i)] = loss_of_item(away, noise_of(seed_, first + i));
    std::this_thread::sleep_until(begin + each * ++done);
  }
  world.all_reduce_sum(std::span<double>(losses));
  Evaluation out;
  out.metrics["loss"] =
      std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(items);
  out.summary = fmt::format("{} loss {:.4f}", request.split, out.metrics["loss"]);
  return out;
}

std::unique_ptr<Task> make_pretend() { return std::make_unique<Pretend>(); }

}  // namespace lockstep
