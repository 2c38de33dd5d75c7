// Decides which texts are in which step and makes their packed batches. The plan is a pure function
// of (seed, epoch), equal on every rank. A batch is a pure function of (seed, epoch, step, part,
// parts).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "config/fields.h"
#include "data/labelled/text_set.h"
#include "data/steps/rank_shares.h"
#include "data/steps/step_size.h"

namespace lockstep {

struct TextBatchConfig {  // section [batch]
  int64_t examples = 32;  // per optimizer step, over all ranks
  PerRankConfig per_rank;
  int64_t accumulate = 1;
  bool drop_last = false;
  std::string order = "shuffled";
  int64_t longest = 0;
  int64_t evaluation_tokens = 8192;
  SharesConfig shares;

  void describe(Fields& f);
};

inline constexpr int64_t kShortestInput = 4;  // fewest ids that hold [CLS], [SEP] and a text

// Texts that are concatenated without padding.
struct TextTensors {
  torch::Tensor ids;             // int64 [tokens]
  torch::Tensor type_ids;        // int64 [tokens], 0 or 1
  std::vector<int32_t> lengths;  // [n], ids of each text, at least 2; for make_segments()
  torch::Tensor labels;          // int64 [n] for classes, fp32 [n] for values, else undefined
  torch::Tensor indices;         // int64 [n]: numbers in the split, which are keys of dropout
  int64_t texts() const { return static_cast<int64_t>(lengths.size()); }
  int64_t tokens() const { return ids.defined() ? ids.numel() : 0; }
};

// Returns each number of [0, examples) once: ascending for "file", else shuffled by (seed, epoch).
std::vector<int32_t> text_order(int64_t examples, const std::string& order, uint64_t seed,
                                int64_t epoch);

// Splits a step into parts with tokens nearly in proportion to their weights: takes the longest
// text first and adds it to the part that is filled least (StepParts::spread). Within a part the
// order is that of the step. A part is empty only if there are fewer texts than parts. `lengths` is
// indexed by number in the split.
std::vector<std::vector<int32_t>> split_texts(std::span<const int32_t> step,
                                              std::span<const int32_t> lengths,
                                              const StepParts& parts);

// Returns all texts, each once, in groups that do not depend on the number of ranks. A group holds
// texts of similar length, at most `tokens` tokens in all (except a group of one text); the longest
// texts come first. Rank r takes the groups whose number modulo the number of ranks is r.
std::vector<std::vector<int32_t>> evaluation_groups(std::span<const int32_t> lengths,
                                                    int64_t tokens);

// Thread-safe. `set` must outlive the loader.
class TextLoader {
 public:
  struct Options {
    uint64_t seed = 1;
    int64_t ranks = 1;
    int64_t step_examples = 0;           // of a full step; 0: TextBatchConfig::examples
    torch::Device device = torch::kCPU;  // of the tensors; for a GPU the host memory is pinned
  };
  // Throws ConfigError when TextBatchConfig::longest is too small.
  TextLoader(const TextSet& set, const TextBatchConfig& config, const Options& options);

  // Training calls this. Throws ConfigError when a step has fewer examples than parts (ranks *
  // accumulate), or when no step of an epoch is full and drop_last is on.
  void check_training() const;

  // Call it before the first batch: the first steps of `epoch` were of other sizes.
  void continue_epoch(int64_t epoch, std::vector<EpochStretch> done);
  int64_t steps_in_epoch(int64_t epoch) const;
  int64_t examples_in_step(int64_t epoch, int64_t step_in_epoch) const;
  int64_t tokens_in_step(int64_t epoch, int64_t step_in_epoch);
  // Returns part `part` of a step. The part may contain no texts.
  TextTensors batch(int64_t epoch, int64_t step_in_epoch, int64_t part, const StepParts& parts);
  // Returns a batch of any texts in the given order; numbers may repeat.
  TextTensors pack(std::span<const int32_t> indices) const;

  // Returns the tokens of each text after cutting to TextBatchConfig::longest, by number in the
  // split.
  std::span<const int32_t> lengths() const { return lengths_; }
  std::vector<std::vector<int32_t>> evaluation_groups() const;

 private:
  std::vector<int32_t> step(int64_t epoch, int64_t step_in_epoch);
  void write_example(int64_t i, int64_t* ids, int64_t* types) const;

  const TextSet& set_;
  TextBatchConfig config_;
  Options options_;
  EpochSteps steps_;
  std::vector<int32_t> lengths_;
  std::mutex mutex_;  // guards the order: the prefetch thread and the trainer use it
  int64_t ordered_epoch_ = -1;
  std::vector<int32_t> order_;  // the order of ordered_epoch_
};

}  // namespace lockstep
