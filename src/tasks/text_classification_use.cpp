// Implements the uses of a network that classifies texts: evaluation, and classifying.
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "batches/shared_files.h"
#include "metrics/classification_scores.h"
#include "metrics/correlation.h"
#include "tasks/classification_figures.h"
#include "tasks/text_classification.h"

namespace lockstep {

namespace {

// Returns `items` of the numbers from 0 up to `total`, evenly spread.
std::vector<int32_t> spread_indices(int64_t items, int64_t total) {
  std::vector<int32_t> out(static_cast<std::size_t>(items));
  for (int64_t i = 0; i < items; ++i) out[i] = static_cast<int32_t>(i * total / items);
  return out;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

const std::vector<MetricKind>& TextClassification::metrics() const {
  static const std::vector<MetricKind> kinds = [] {
    std::vector<MetricKind> out{{"accuracy", true}};
    append_class_metrics(out);
    out.insert(out.end(), {{"pearson", true}, {"spearman", true}, {"mse", false}, {"loss", false}});
    return out;
  }();
  return kinds;
}

// CPUs compute fp16 through fp32; where nothing is trained, the exact weights serve as well.
Numerics TextClassification::use_numerics() const {
  Numerics numerics = context_.numerics;
  if (numerics.compute == at::kHalf && context_.device.is_cpu()) numerics.compute = at::kFloat;
  return numerics;
}

int64_t TextClassification::configured_items(const std::string& name) const {
  const std::string& data = config_.texts.data;
  return data.empty() ? 0 : TextSet(data, name).size();
}

TextClassification::Split& TextClassification::split(const std::string& name) {
  const auto found = splits_.find(name);
  if (found != splits_.end()) return found->second;
  const fs::path data = config_.texts.data;
  Split opened{.set = std::make_unique<TextSet>(data, name)};
  const TextManifest& manifest = opened.set->manifest();
  if (!opened.set->record().labelled) {
    throw DataError("{}: the split {} has no labels to measure by", data.string(), name);
  }
  if (train_ == nullptr) {
    check_same_tokenizer(manifest.tokenizer, data, tokenizer_->identity(),
                         context_.run_folder.string());
    const bool values = manifest.label_kind == LabelKind::kValue;
    if (values != bert_.regression || (!values && manifest.classes != bert_.labels)) {
      throw DataError("{}: {} has the classes {}; the network was trained on {}", data.string(),
                      name, values ? "of no names: numbers" : join(manifest.classes, ", "),
                      join(bert_.labels, ", "));
    }
  }
  TextBatchConfig batch = config_.batch;  // steps do not matter here
  batch.examples = 1;
  batch.per_rank = {};
  batch.accumulate = 1;
  opened.loader = std::make_unique<TextLoader>(
      *opened.set, batch,
      TextLoader::Options{.seed = context_.seed, .ranks = 1, .device = context_.device});
  check_lengths(*opened.loader, *opened.set);
  return splits_.emplace(name, std::move(opened)).first->second;
}

// Groups do not depend on the ranks, and each item's figures have a fixed place in the sum, so the
// result has the same bits for any number of ranks.
TextClassification::Answers TextClassification::answer(World& world, const Split& from,
                                                       const std::vector<int32_t>& items,
                                                       const EvaluationRequest& request) const {
  enum Part { kOutput, kLoss, kNll, kParts };
  const auto count = static_cast<int64_t>(items.size());
  std::vector<int32_t> lengths;
  for (int32_t item : items) lengths.push_back(from.loader->lengths()[item]);
  const auto groups = evaluation_groups(lengths, config_.batch.evaluation_tokens);
  std::vector<double> parts(static_cast<std::size_t>(kParts * count));
  const BertForward how{.numerics = use_numerics()};
  for (std::size_t g = static_cast<std::size_t>(world.rank());
       g < groups.size() && !request.is_stopped(); g += static_cast<std::size_t>(world.size())) {
    std::vector<int32_t> chosen;
    for (int32_t place : groups[g]) chosen.push_back(items[static_cast<std::size_t>(place)]);
    const std::unique_ptr<TextBatch> batch = pack(from.loader->pack(chosen));
    const torch::Tensor logits = model_->logits(batch->texts, how).to(torch::kFloat);
    const torch::Tensor output =
        (bert_.regression ? logits.squeeze(1) : logits.argmax(1)).to(torch::kCPU, torch::kDouble);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      const LossParts r =
          loss_of(logits.narrow(0, row, 1), batch->tensors.labels.narrow(0, row, 1));
      double* to = &parts[static_cast<std::size_t>(groups[g][i]) * kParts];
      to[kOutput] = output[row].item<double>();
      to[kLoss] = r.loss.item<double>();
      to[kNll] = r.nll.item<double>();
    }
  }
  if (breaks_off(world, request)) return {.broken_off = true};
  world.all_reduce_sum(std::span<double>(parts));
  Answers out;
  for (int64_t i = 0; i < count; ++i) {
    out.output.push_back(parts[static_cast<std::size_t>(i * kParts + kOutput)]);
    out.loss.push_back(parts[static_cast<std::size_t>(i * kParts + kLoss)]);
    out.nll.push_back(parts[static_cast<std::size_t>(i * kParts + kNll)]);
  }
  return out;
}

int64_t TextClassification::positive_class() const {
  return positive_label(bert_.labels, config_.texts.positive, "texts.positive");
}

void TextClassification::measure_classes(const Split& from, const std::vector<int32_t>& items,
                                         const Answers& answers, bool confusion,
                                         Evaluation& out) const {
  Confusion counts(bert_.labels);
  for (std::size_t i = 0; i < items.size(); ++i) {
    ++counts.at(from.set->file().label(items[i]), static_cast<int64_t>(answers.output[i]));
  }
  const ClassificationScores scores = classification_scores(counts, positive_class());
  out.metrics["accuracy"] = scores.accuracy;
  add_class_metrics(scores, counts.size(), out);
  out.metrics["nll"] = mean(answers.nll);
  out.summary += fmt::format("accuracy {:.4f}  f1 {:.4f}", scores.accuracy, out.metrics["f1"]);
  if (confusion) out.confusion = std::move(counts);
}

Sample TextClassification::sample(const Split& from, int32_t item, double output) const {
  const TextFile& file = from.set->file();
  std::vector<int64_t> ids(static_cast<std::size_t>(file.length(item)));
  file.read(item, ids.data());
  const std::vector<int32_t> narrow(ids.begin(), ids.end());
  auto named = [&](double answer) {
    return bert_.regression ? fmt::format("{:.3f}", answer)
                            : bert_.labels[static_cast<std::size_t>(answer)];
  };
  const double given = bert_.regression ? file.value(item) : static_cast<double>(file.label(item));
  return {tokenizer_->pieces().decode(narrow), named(given), named(output)};
}

Evaluation TextClassification::evaluate(World& world, const EvaluationRequest& request) {
  torch::InferenceMode inference;
  check_metrics(request.metrics);
  if (!context_.run_folder.empty()) {  // in training, open() has done it
    fetch_missing_files(&world, config_.texts.data,
                        [this] { return read_text_manifest(config_.texts.data).files; });
  }
  const Split& from = split(request.split);
  const int64_t total = from.set->size();
  const std::vector<int32_t> items =
      spread_indices(request.limit > 0 ? std::min(request.limit, total) : total, total);
  if (items.empty()) throw DataError("{}: {} is empty", config_.texts.data, request.split);
  const Answers answers = answer(world, from, items, request);
  if (answers.broken_off) return {.broken_off = true};
  Evaluation out;
  out.summary = request.split + "  ";
  if (bert_.regression) {
    std::vector<double> given;
    for (int32_t item : items) given.push_back(from.set->file().value(item));
    out.metrics["pearson"] = pearson(answers.output, given);
    out.metrics["spearman"] = spearman(answers.output, given);
    out.metrics["mse"] = mean_squared_error(answers.output, given);
    out.summary += fmt::format("pearson {:.4f}  spearman {:.4f}  mse {:.4f}",
                               out.metrics["pearson"], out.metrics["spearman"], out.metrics["mse"]);
  } else {
    measure_classes(from, items, answers, request.confusion, out);
  }
  out.metrics["loss"] = mean(answers.loss);
  out.summary += fmt::format("  loss {:.4f}", out.metrics["loss"]);
  const auto shown = std::min<int64_t>(request.samples, std::ssize(items));
  for (int32_t place : spread_indices(shown, std::ssize(items))) {
    out.samples.push_back(sample(from, items[static_cast<std::size_t>(place)],
                                 answers.output[static_cast<std::size_t>(place)]));
  }
  return out;
}

torch::Tensor TextClassification::score(const std::vector<TextPair>& texts) const {
  torch::InferenceMode inference;
  std::vector<int64_t> ids, types;
  std::vector<int32_t> lengths;
  WordPieceInput input;
  const auto longest = static_cast<std::size_t>(bert_.shape.max_position_embeddings);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (const std::string& text : {texts[i].text, texts[i].pair.value_or("")}) {
      if (const auto at = invalid_utf8_at(text)) {
        throw DataError("text {}: not valid UTF-8 at byte {}", i + 1, *at);
      }
    }
    if (texts[i].pair) {
      tokenizer_->encode(texts[i].text, *texts[i].pair, input, longest);
    } else {
      tokenizer_->encode(texts[i].text, input, longest);
    }
    ids.insert(ids.end(), input.ids.begin(), input.ids.end());
    types.insert(types.end(), input.type_ids.begin(), input.type_ids.end());
    lengths.push_back(static_cast<int32_t>(input.ids.size()));
  }
  const PackedTexts packed =
      pack_texts(torch::tensor(ids, torch::kInt64).to(context_.device),
                 torch::tensor(types, torch::kInt64).to(context_.device), lengths);
  return model_->logits(packed, {.numerics = use_numerics()}).to(torch::kCPU, torch::kFloat);
}

std::vector<std::vector<ClassProbability>> TextClassification::classify(
    const std::vector<TextPair>& texts, int64_t most) const {
  return most_probable(score(texts).softmax(1), bert_.labels, most);
}

}  // namespace lockstep
