// Which texts make which step, and their packed batches. The plan is a pure function of (seed,
// epoch), equal on every rank; a batch of (seed, epoch, step, part, parts).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "config/fields.h"
#include "data/labelled/text_set.h"

namespace lockstep {

struct TextBatchConfig {  // section [batch]
  int64_t examples = 32;  // of one optimizer step, over all ranks
  int64_t per_gpu_batch = 0;
  int64_t accumulate = 1;
  bool drop_last = false;
  std::string order = "shuffled";
  int64_t longest = 0;
  int64_t evaluation_tokens = 8192;

  void describe(Fields& f);
  // Examples of a whole step: `examples`, or per_gpu_batch * ranks * accumulate.
  int64_t step_examples(int64_t ranks) const;
};

inline constexpr int64_t kShortestInput = 4;  // ids: less has no room for [CLS], [SEP] and a text

// Texts one after the other without padding.
struct TextTensors {
  torch::Tensor ids;             // int64 [tokens]
  torch::Tensor type_ids;        // int64 [tokens], 0 or 1
  std::vector<int32_t> lengths;  // [n], of each text, at least 2; for make_segments()
  torch::Tensor labels;          // int64 [n] for classes, fp32 [n] for values; undefined for none
  torch::Tensor indices;         // int64 [n]: numbers in the split; keys of dropout
  int64_t texts() const { return static_cast<int64_t>(lengths.size()); }
  int64_t tokens() const { return ids.defined() ? ids.numel() : 0; }
};

// All numbers of [0, examples), each once: as they come for "file", else shuffled by (seed, epoch).
std::vector<int32_t> text_order(int64_t examples, const std::string& order, uint64_t seed,
                                int64_t epoch);

// Splits a step into `parts` with nearly equal numbers of tokens (longest first, each to the part
// with the least; within a part in the order of the step). A part is empty when there are fewer
// texts than parts. `lengths` is by number in the split.
std::vector<std::vector<int32_t>> split_texts(std::span<const int32_t> step,
                                              std::span<const int32_t> lengths, int64_t parts);

// All texts, each once, in groups that do not depend on the number of ranks: of like length, the
// longest first, at most `tokens` in all (but for a group of one). Rank r takes those whose number
// is r modulo the number of ranks.
std::vector<std::vector<int32_t>> evaluation_groups(std::span<const int32_t> lengths,
                                                    int64_t tokens);

// Thread-safe. `set` must outlive the loader.
class TextLoader {
 public:
  struct Options {
    uint64_t seed = 1;
    int64_t ranks = 1;
    torch::Device device = torch::kCPU;  // of the tensors; a GPU is fed from pinned memory
  };
  // Throws ConfigError when TextBatchConfig::longest is too small.
  TextLoader(const TextSet& set, const TextBatchConfig& config, const Options& options);

  // For a loader that training uses: throws ConfigError when a step has fewer examples than there
  // are parts (ranks * accumulate), or no step of an epoch is full and drop_last is on.
  void check_training() const;

  int64_t steps_in_epoch() const;  // of every epoch
  int64_t examples_in_step(int64_t step_in_epoch) const;
  int64_t tokens_in_step(int64_t epoch, int64_t step_in_epoch);
  // Part `part` of `parts` (ranks * accumulate) of a step; no texts in it: an empty part.
  TextTensors batch(int64_t epoch, int64_t step_in_epoch, int64_t part, int64_t parts);
  // Any texts, in this order; numbers may repeat.
  TextTensors pack(std::span<const int32_t> indices) const;

  // By number in the split, in tokens, after cutting to TextBatchConfig::longest.
  std::span<const int32_t> lengths() const { return lengths_; }
  std::vector<std::vector<int32_t>> evaluation_groups() const;

 private:
  std::vector<int32_t> step(int64_t epoch, int64_t step_in_epoch);
  void write_example(int64_t i, int64_t* ids, int64_t* types) const;

  const TextSet& set_;
  TextBatchConfig config_;
  Options options_;
  int64_t step_examples_;
  std::vector<int32_t> lengths_;
  std::mutex mutex_;  // the prefetch thread and the trainer both ask for orders
  int64_t ordered_epoch_ = -1;
  std::vector<int32_t> order_;  // of ordered_epoch_
};

}  // namespace lockstep
