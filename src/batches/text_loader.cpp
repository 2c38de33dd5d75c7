#include "batches/text_loader.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "data/tokenize/wordpiece.h"
#include "nn/upload.h"

namespace lockstep {

namespace {

constexpr const char* kShuffled = "shuffled";

// The sizes that are kept of an example: ids of the first text without [CLS] and [SEP], and of the
// second without [SEP].
struct Parts {
  std::size_t first = 0, second = 0;
  bool pair = false;

  std::size_t length() const { return first + second + (pair ? 3 : 2); }
};

Parts parts_of(const TextFile& file, int64_t i) {
  const auto length = static_cast<std::size_t>(file.length(i));
  const auto boundary = static_cast<std::size_t>(file.second_begin(i));
  const bool pair = boundary < length;
  return {boundary - 2, pair ? length - boundary - 1 : 0, pair};
}

Parts cut(Parts parts, int64_t longest) {
  const auto most = static_cast<std::size_t>(longest);
  if (longest == 0 || parts.length() <= most) return parts;
  const KeptIds kept = keep_longest_first(parts.first, parts.second, most - (parts.pair ? 3 : 2));
  return {kept.first, kept.second, parts.pair};
}

std::string counted(int64_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

void TextBatchConfig::describe(Fields& f) {
  f("examples", &examples, AtLeast{0},
    "texts of one optimizer step, all ranks together; 0: by per_rank");
  per_rank.describe(f, "texts");
  f("accumulate", &accumulate, AtLeast{1}, "micro-batches that each rank adds up in one step");
  f("drop_last", &drop_last, Any{}, "leave out the last step of an epoch when it is not full");
  f("order", &order, OneOf{{kShuffled, "file"}},
    "of the texts of an epoch: shuffled anew each epoch, or as they stand in the file");
  f("longest", &longest, AtLeast{0}, "ids of a text or pair that are kept; 0: as prepared");
  f("evaluation_tokens", &evaluation_tokens, AtLeast{1}, "ids of the texts evaluated together");
  shares.describe(f);
}

std::vector<int32_t> text_order(int64_t examples, const std::string& order, uint64_t seed,
                                int64_t epoch) {
  std::vector<int32_t> out(static_cast<std::size_t>(examples));
  std::iota(out.begin(), out.end(), 0);
  if (order == kShuffled) shuffle_with_key(out, combine_keys(seed, static_cast<uint64_t>(epoch)));
  return out;
}

std::vector<std::vector<int32_t>> split_texts(std::span<const int32_t> step,
                                              std::span<const int32_t> lengths,
                                              const StepParts& parts) {
  std::vector<std::size_t> by_length(step.size());
  std::iota(by_length.begin(), by_length.end(), 0);
  std::stable_sort(by_length.begin(), by_length.end(), [&](std::size_t a, std::size_t b) {
    return lengths[step[a]] > lengths[step[b]];
  });
  std::vector<int64_t> costs;
  for (std::size_t place : by_length) costs.push_back(lengths[step[place]]);
  const std::vector<int64_t> part_of = parts.spread(costs);
  std::vector<std::vector<std::size_t>> places(static_cast<std::size_t>(parts.count()));
  for (std::size_t i = 0; i < by_length.size(); ++i) places[part_of[i]].push_back(by_length[i]);
  std::vector<std::vector<int32_t>> out(places.size());
  for (std::size_t part = 0; part < places.size(); ++part) {
    std::sort(places[part].begin(), places[part].end());
    for (std::size_t place : places[part]) out[part].push_back(step[place]);
  }
  return out;
}

std::vector<std::vector<int32_t>> evaluation_groups(std::span<const int32_t> lengths,
                                                    int64_t tokens) {
  std::vector<int32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<int32_t>> groups;
  int64_t filled = 0;
  for (int32_t i : order) {
    if (groups.empty() || filled + lengths[i] > tokens) {
      groups.emplace_back();
      filled = 0;
    }
    groups.back().push_back(i);
    filled += lengths[i];
  }
  return groups;
}

TextLoader::TextLoader(const TextSet& set, const TextBatchConfig& config, const Options& options)
    : set_(set),
      config_(config),
      options_(options),
      steps_(options.step_examples > 0 ? options.step_examples : config.examples) {
  if (config.longest != 0 && config.longest < kShortestInput) {
    throw ConfigError("batch.longest: {}: expected {} or more, as [CLS] and [SEP] count, or 0",
                      config.longest, kShortestInput);
  }
  lengths_.reserve(static_cast<std::size_t>(set.size()));
  for (int64_t i = 0; i < set.size(); ++i) {
    lengths_.push_back(static_cast<int32_t>(cut(parts_of(set.file(), i), config.longest).length()));
  }
}

void TextLoader::check_training() const {
  const int64_t parts = options_.ranks * config_.accumulate;
  if (steps_.size() < parts) {
    throw ConfigError(
        "batch.examples: {} a step are too few for {} with {} each: expected at least {}",
        counted(steps_.size(), "text"), counted(options_.ranks, "rank"),
        counted(config_.accumulate, "micro-batch"), parts);
  }
  if (steps_in_epoch(0) == 0) {
    throw ConfigError(
        "batch: {} a step, but the split {} has {}: no step of an epoch is full; a smaller batch, "
        "or batch.drop_last=false",
        counted(steps_.size(), "text"), set_.record().name, set_.size());
  }
}

void TextLoader::continue_epoch(int64_t epoch, std::vector<EpochStretch> done) {
  steps_.continue_epoch(epoch, std::move(done));
}

int64_t TextLoader::steps_in_epoch(int64_t epoch) const {
  const int64_t full = steps_.full_steps(epoch, set_.size());
  return full + (examples_in_step(epoch, full) > 0 && !config_.drop_last ? 1 : 0);
}

int64_t TextLoader::examples_in_step(int64_t epoch, int64_t step_in_epoch) const {
  return steps_.range(epoch, step_in_epoch, set_.size()).count();
}

std::vector<int32_t> TextLoader::step(int64_t epoch, int64_t step_in_epoch) {
  std::lock_guard lock(mutex_);
  if (ordered_epoch_ != epoch) {
    order_ = text_order(set_.size(), config_.order, options_.seed, epoch);
    ordered_epoch_ = epoch;
  }
  const auto [begin, end] = steps_.range(epoch, step_in_epoch, set_.size());
  return {order_.begin() + begin, order_.begin() + end};
}

int64_t TextLoader::tokens_in_step(int64_t epoch, int64_t step_in_epoch) {
  int64_t tokens = 0;
  for (int32_t i : step(epoch, step_in_epoch)) tokens += lengths_[static_cast<std::size_t>(i)];
  return tokens;
}

TextTensors TextLoader::batch(int64_t epoch, int64_t step_in_epoch, int64_t part,
                              const StepParts& parts) {
  return pack(split_texts(step(epoch, step_in_epoch), lengths_, parts).at(part));
}

TextTensors TextLoader::pack(std::span<const int32_t> indices) const {
  const auto texts = static_cast<int64_t>(indices.size());
  const bool pinned = !options_.device.is_cpu();
  auto host = [&](at::ScalarType type) {
    return torch::TensorOptions().dtype(type).pinned_memory(pinned);
  };
  TextTensors out;
  int64_t tokens = 0;
  for (int32_t i : indices) {
    out.lengths.push_back(lengths_[static_cast<std::size_t>(i)]);
    tokens += out.lengths.back();
  }
  out.ids = torch::empty({tokens}, host(torch::kLong));
  out.type_ids = torch::empty({tokens}, host(torch::kLong));
  out.indices = torch::empty({texts}, host(torch::kLong));
  int64_t* ids = out.ids.data_ptr<int64_t>();
  int64_t* types = out.type_ids.data_ptr<int64_t>();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    write_example(indices[i], ids, types);
    ids += out.lengths[i];
    types += out.lengths[i];
    out.indices.data_ptr<int64_t>()[i] = indices[i];
  }
  const TextFile& file = set_.file();
  if (file.info().label_kind == LabelKind::kClass) {
    out.labels = torch::empty({texts}, host(torch::kLong));
    for (int64_t i = 0; i < texts; ++i) {
      out.labels.data_ptr<int64_t>()[i] = file.label(indices[static_cast<std::size_t>(i)]);
    }
  } else if (file.info().label_kind == LabelKind::kValue) {
    out.labels = torch::empty({texts}, host(torch::kFloat));
    for (int64_t i = 0; i < texts; ++i) {
      out.labels.data_ptr<float>()[i] = file.value(indices[static_cast<std::size_t>(i)]);
    }
  }
  for (torch::Tensor* t : {&out.ids, &out.type_ids, &out.labels, &out.indices}) {
    if (t->defined()) *t = upload(*t, options_.device);
  }
  return out;
}

// Writes [CLS] first [SEP] second [SEP]. Each text is cut at its end.
void TextLoader::write_example(int64_t i, int64_t* ids, int64_t* types) const {
  const TextFile& file = set_.file();
  const int32_t whole = file.length(i), boundary = file.second_begin(i);
  const int32_t length = lengths_[static_cast<std::size_t>(i)];
  int32_t first_end = boundary;
  if (length == whole) {
    file.read(i, ids);
  } else {
    thread_local std::vector<int64_t> all;
    all.resize(static_cast<std::size_t>(whole));
    file.read(i, all.data());
    const Parts kept = cut(parts_of(file, i), config_.longest);
    first_end = static_cast<int32_t>(kept.first) + 2;
    int64_t* to = std::copy_n(all.begin(), kept.first + 1, ids);
    *to++ = all[static_cast<std::size_t>(boundary) - 1];
    to = std::copy_n(all.begin() + boundary, kept.second, to);
    if (kept.pair) *to = all.back();
  }
  std::fill(types, types + std::min(first_end, length), 0);
  std::fill(types + std::min(first_end, length), types + length, 1);
}

std::vector<std::vector<int32_t>> TextLoader::evaluation_groups() const {
  return lockstep::evaluation_groups(lengths_, config_.evaluation_tokens);
}

}  // namespace lockstep
