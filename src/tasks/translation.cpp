#include "tasks/translation.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "batches/shared_files.h"
#include "metrics/perplexity.h"
#include "nn/cross_entropy.h"
#include "nn/upload.h"

namespace lockstep {

namespace {

constexpr int64_t kEvaluationTokens = 4096;  // target tokens in a batch of the evaluation loss

struct DataSection {
  TranslationConfig& config;
  void describe(Fields& f) {
    f("corpus", &config.corpus, InputPath{}, "folder made by lockstep prepare");
  }
};

struct TranslationLossSection {
  TranslationConfig& config;
  void describe(Fields& f) {
    f("label_smoothing", &config.label_smoothing, Between{0, 1},
      "share of the target's probability that is spread over the vocabulary");
    f("over_others", &config.smoothing.over_others, Any{},
      "spread over all words but the target, as OpenSeq2Seq; else over all");
    f("subtract_entropy", &config.smoothing.subtract_entropy, Any{},
      "less the entropy of the smoothed target, as OpenSeq2Seq: 0 is perfect");
  }
};

// Tokens on each side besides the pieces: </s>, and what the network adds before them.
PairLength specials(const SpecialIds& ids, const TransformerConfig& model) {
  return {static_cast<int32_t>(source_prefix_of(ids, model).size()) + 1,
          static_cast<int32_t>(primer_of(ids, model).size()) + 1};
}

// Returns the keys of the dropout rows, made from the sentence pair, the side and the position, so
// that a mask does not depend on what else is in the micro-batch.
torch::Tensor row_keys(const std::vector<int32_t>& pairs, const Segments& segments, uint64_t side,
                       torch::Device device) {
  torch::Tensor keys = torch::empty({segments.tokens()}, torch::kInt64);
  auto out = keys.mutable_data_ptr<int64_t>();
  for (std::size_t s = 0; s < pairs.size(); ++s) {
    uint64_t sentence = combine_keys(static_cast<uint64_t>(pairs[s]), side);
    int32_t begin = segments.offsets[s];
    for (int32_t row = begin; row < segments.offsets[s + 1]; ++row) {
      out[row] = static_cast<int64_t>(mix64(sentence + static_cast<uint64_t>(row - begin)));
    }
  }
  return upload(keys, device);
}

}  // namespace

// A split of the corpus as token ids, and the division of its pairs into steps.
struct Translation::Corpus {
  // `specials`: tokens that the network adds to each side. `longest` pieces are kept; 0: all.
  Corpus(const fs::path& folder, const std::string& split, PairLength specials, int64_t longest)
      : tokens(folder / (split + ".tokens")) {
    auto cut = [&](int32_t pieces) {
      return longest == 0 ? pieces : std::min(pieces, static_cast<int32_t>(longest));
    };
    lengths.reserve(static_cast<std::size_t>(tokens.pairs()));
    for (int64_t i = 0; i < tokens.pairs(); ++i) {
      lengths.push_back({cut(tokens.source_length(i)) + specials.source,
                         cut(tokens.target_length(i)) + specials.target});
    }
  }

  int64_t load(int32_t pair) const { return lengths[pair].source + lengths[pair].target; }

  TokenFile tokens;
  std::vector<PairLength> lengths;  // including special tokens
  std::mutex mutex;                 // the prefetch thread and the trainer both ask for plans
  int64_t continued_epoch = -1;
  std::vector<EpochStretch> done;  // steps of other sizes that continued_epoch began with
  int64_t planned_epoch = -1;
  std::vector<StepPlan> steps;  // of planned_epoch
};

void Translation::describe(Fields& f) {
  DataSection data{config_};
  f.section("data", data, "what it learns from");
  f.section("model", config_.model, "the Transformer");
  TranslationLossSection loss{config_};
  f.section("loss", loss, "what is minimised");
  f.section("batch", config_.batch, "what makes a step");
  f.section("decoding", config_.decoding, "beam search");
}

void Translation::open(const TaskContext& context) {
  context_ = context;
  steps_ = config_.batch;
  if (PerRankConfig& per_rank = config_.batch.per_rank; per_rank.is_on()) {
    const int64_t whole = per_rank.settle(context.ranks, config_.batch.accumulate);
    steps_ = steps_.with({whole, config_.batch.per_rank_counts});
  }
  bool in_use = !context.run_folder.empty();
  if (!in_use) {
    if (config_.corpus.empty()) {
      throw ConfigError("data.corpus: not set; expected a folder made by lockstep prepare");
    }
    fetch_missing_files(context.world, config_.corpus,
                        [this] { return read_manifest(config_.corpus).files; });
    read_manifest(config_.corpus);
  }
  tokenizer_ = TranslationTokenizer::load(in_use ? context.run_folder : fs::path(config_.corpus));
  const fs::path weights = choose_network();
  check_tokenizer_fits();
  special_ = choose_special_ids();
  if (!in_use) {
    corpus_ = std::make_shared<Corpus>(config_.corpus, "train", specials(special_, config_.model),
                                       config_.batch.longest);
  }
  const int64_t pieces = published_ ? published_->vocabulary : tokenizer_->vocab_size();
  model_ = std::make_unique<Transformer>(config_.model, pieces, parameters_);
  parameters_.allocate(context.device, context.numerics.compute, context.seed);
  if (!weights.empty()) begin_with(weights);
}

// Depends on the files' contents only, not on where they were made or are stored. A line a file,
// so that one that differs is named; where a file is there, its own size counts.
std::string Translation::data_identity() const {
  std::string out;
  for (const FileRecord& file : read_manifest(config_.corpus).files) {
    std::error_code absent;
    const auto size = fs::file_size(fs::path(config_.corpus) / file.name, absent);
    out += fmt::format("{}: {} bytes, SHA-256 {}\n", file.name,
                       absent ? file.bytes : static_cast<int64_t>(size), file.sha256);
  }
  return out;
}

void Translation::save_assets(const fs::path& run_folder) {
  for (const auto& [name, contents] : tokenizer_->files()) {
    write_file(run_folder / name,
               tokenizer_->is_own() ? read_file(fs::path(config_.corpus) / name) : contents);
  }
  write_file(run_folder / "corpus.json", read_file(fs::path(config_.corpus) / kManifestName));
  save_network(run_folder);
}

const std::vector<StepPlan>& Translation::plan(int64_t epoch) {
  Corpus& corpus = *corpus_;
  if (corpus.planned_epoch != epoch) {
    static const std::vector<EpochStretch> kNone;
    corpus.steps = plan_epoch(corpus.lengths, steps_, context_.seed, epoch,
                              epoch == corpus.continued_epoch ? corpus.done : kNone);
    corpus.planned_epoch = epoch;
  }
  return corpus.steps;
}

void Translation::continue_epoch(int64_t epoch, const std::vector<EpochStretch>& done) {
  std::lock_guard lock(corpus_->mutex);
  corpus_->continued_epoch = epoch;
  corpus_->done = done;
  corpus_->planned_epoch = -1;
}

int64_t Translation::steps_in_epoch(int64_t epoch) {
  std::lock_guard lock(corpus_->mutex);
  return static_cast<int64_t>(plan(epoch).size());
}

int64_t Translation::targets_in_step(int64_t epoch, int64_t step_in_epoch) {
  std::lock_guard lock(corpus_->mutex);
  int64_t targets = 0;
  for (int32_t pair : plan(epoch)[step_in_epoch]) targets += corpus_->lengths[pair].target;
  return targets;
}

int64_t Translation::train_items() const { return corpus_->tokens.pairs(); }

int64_t Translation::items_of(const std::string& split) {
  return TokenFile(fs::path(config_.corpus) / (split + ".tokens")).pairs();
}

int64_t Translation::configured_items(const std::string& split) const {
  if (config_.corpus.empty()) return 0;
  const Manifest manifest = read_manifest(config_.corpus);
  const SplitRecord* record = manifest.find_split(split);
  return record == nullptr ? 0 : record->pairs;
}

double Translation::items_per_step() {
  if (steps_.counts_sentences()) return static_cast<double>(steps_.sentences);
  return static_cast<double>(train_items()) / static_cast<double>(steps_in_epoch(0));
}

std::unique_ptr<TranslationBatch> Translation::make_translation_batch(
    const TokenFile& tokens, const std::vector<int32_t>& pairs, int64_t longest) const {
  const std::vector<int32_t> prefix = source_prefix_of(special_, config_.model);
  const std::vector<int64_t> primer = primer_of(special_, config_.model);
  std::vector<int32_t> start(primer.begin(), primer.end());  // then the target follows
  start.push_back(special_.bos);
  // Returns `before`, then the pieces.
  auto cut = [&](std::vector<int32_t> ids, const std::vector<int32_t>& before) {
    if (longest > 0 && std::ssize(ids) > longest) ids.resize(static_cast<std::size_t>(longest));
    ids.insert(ids.begin(), before.begin(), before.end());
    return ids;
  };
  const torch::Device device = context_.device;
  std::vector<std::vector<int32_t>> sources, targets_in;
  std::vector<int64_t> targets_out;
  for (int32_t pair : pairs) {
    sources.push_back(cut(tokens.source(pair), prefix));
    sources.back().push_back(special_.eos);
    targets_in.push_back(cut(tokens.target(pair), start));
    targets_out.insert(targets_out.end(), targets_in.back().begin() + 1, targets_in.back().end());
    targets_out.push_back(special_.eos);
  }
  auto batch = std::make_unique<TranslationBatch>();
  batch->input.source = pack_sentences(sources, device);
  batch->input.target = pack_sentences(targets_in, device);
  batch->input.source.rows = row_keys(pairs, batch->input.source.segments, 0, device);
  batch->input.target.rows = row_keys(pairs, batch->input.target.segments, 1, device);
  batch->targets_out = upload(torch::tensor(targets_out, torch::kInt64), device);
  batch->items = static_cast<int64_t>(pairs.size());
  batch->targets = batch->input.target.segments.tokens();
  batch->sources = batch->input.source.segments.tokens();
  return batch;
}

std::unique_ptr<Batch> Translation::make_batch(const BatchPosition& position) {
  std::vector<int32_t> pairs;
  {
    std::lock_guard lock(corpus_->mutex);
    const StepPlan& step = plan(position.epoch)[position.step_in_epoch];
    pairs = split_step(step, corpus_->lengths, position.parts)[position.part];
  }
  if (pairs.empty()) return nullptr;
  return make_translation_batch(corpus_->tokens, pairs, config_.batch.longest);
}

int64_t Translation::largest_step_load() {
  std::lock_guard lock(corpus_->mutex);
  int64_t largest = 0;
  for (const StepPlan& step : plan(0)) {
    int64_t load = 0;
    for (int32_t pair : step) load += corpus_->load(pair);
    largest = std::max(largest, load);
  }
  return largest;
}

std::unique_ptr<Batch> Translation::make_probe(int64_t load, ProbeItems items) {
  const Corpus& corpus = *corpus_;
  auto before = [&](int32_t a, int32_t b) {
    return items == ProbeItems::kLongest ? corpus.load(a) > corpus.load(b)
                                         : corpus.load(a) < corpus.load(b);
  };
  std::vector<int32_t> order(corpus.lengths.size());
  std::iota(order.begin(), order.end(), 0);
  // A pair has at least the two </s>, so more pairs are never needed.
  auto needed = std::min(static_cast<std::size_t>(load / 2 + 1), order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(needed), order.end(),
                    before);
  std::vector<int32_t> pairs;
  for (int64_t filled = 0; filled < load; filled += corpus.load(pairs.back())) {
    pairs.push_back(order[pairs.size() % needed]);
  }
  return make_translation_batch(corpus.tokens, pairs, config_.batch.longest);
}

ForwardContext Translation::forward_context(bool training, int64_t step) const {
  return {.training = training,
          .numerics = training ? context_.numerics : use_numerics(),
          .seed = context_.seed,
          .step = step};
}

// CPUs multiply fp16 through fp32; where nothing is trained, the exact weights serve as well.
Numerics Translation::use_numerics() const {
  Numerics numerics = context_.numerics;
  if (numerics.compute == at::kHalf && context_.device.is_cpu()) numerics.compute = at::kFloat;
  return numerics;
}

LossParts Translation::loss(const Batch& batch, int64_t step) {
  return batch_loss(static_cast<const TranslationBatch&>(batch), forward_context(true, step));
}

LossParts Translation::batch_loss(const TranslationBatch& batch,
                                  const ForwardContext& context) const {
  const LabelSmoothing smoothing =
      label_smoothing(config_.label_smoothing, model_->vocabulary(), config_.smoothing);
  torch::Tensor hidden = model_->forward(batch.input, context);
  CrossEntropyResult result = smoothed_cross_entropy(hidden, model_->output(), batch.targets_out,
                                                     smoothing.share, context.numerics);
  if (smoothing.entropy != 0) {
    result.loss = result.loss - smoothing.entropy * static_cast<double>(batch.targets);
  }
  return {.loss = result.loss, .nll = result.nll, .correct = result.correct};
}

void Translation::measure_loss(World& world, const EvaluationRequest& request, Evaluation& out) {
  torch::InferenceMode inference;
  Corpus corpus(config_.corpus, request.split, specials(special_, config_.model), 0);
  BatchConfig batches{.tokens = kEvaluationTokens};
  std::vector<StepPlan> steps = plan_epoch(corpus.lengths, batches, 0, 0);
  // Four sums of every batch, which are added in the order of the batches: the result has the same
  // bits whichever rank made them.
  std::vector<double> parts(4 * steps.size());
  for (auto i = static_cast<std::size_t>(world.rank()); i < steps.size() && !request.is_stopped();
       i += static_cast<std::size_t>(world.size())) {
    auto batch = make_translation_batch(corpus.tokens, steps[i], 0);
    LossParts r = batch_loss(*batch, forward_context(false, 0));
    parts[4 * i] = r.loss.item<double>();
    parts[4 * i + 1] = r.nll.item<double>();
    parts[4 * i + 2] = static_cast<double>(r.correct.item<int64_t>());
    parts[4 * i + 3] = static_cast<double>(batch->targets);
  }
  out.broken_off = breaks_off(world, request);
  if (out.broken_off) return;
  world.all_reduce_sum(std::span<double>(parts));
  std::array<double, 4> sums{};  // loss, nll, correct, targets
  for (std::size_t i = 0; i < parts.size(); ++i) sums[i % 4] += parts[i];
  out.metrics["loss"] = sums[0] / sums[3];
  out.metrics["nll"] = sums[1] / sums[3];
  out.metrics["perplexity"] = perplexity(sums[1] / sums[3]);
  out.metrics["accuracy"] = sums[2] / sums[3];
  out.summary += fmt::format("  loss {:.3f}  perplexity {:.2f}", out.metrics["loss"],
                             out.metrics["perplexity"]);
}

std::unique_ptr<Task> make_translation() { return std::make_unique<Translation>(); }

}  // namespace lockstep
