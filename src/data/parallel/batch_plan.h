// Plans which sentences are in which step. The plan is a pure function of (seed, epoch) and equal
// on every rank: so ranks need not exchange it, and a resume continues at the exact step.
//
// A step is a set of sentences with at most `tokens` target tokens (or at most `sentences`
// sentences) over all ranks and accumulated micro-batches. How it is split among them does not
// change what it averages over.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "config/fields.h"
#include "data/steps/rank_shares.h"
#include "data/steps/step_size.h"

namespace lockstep {

struct BatchConfig {
  int64_t tokens = 4096;   // target tokens per optimizer step, over all ranks; 0: by another key
  int64_t accumulate = 1;  // micro-batches that each rank computes one after the other
  bool by_length = true;
  int64_t pool_steps = 50;
  int64_t sentences = 0;
  int64_t longest = 0;
  PerRankConfig per_rank;
  std::string per_rank_counts = "tokens";
  SharesConfig shares;

  bool counts_sentences() const { return sentences > 0; }
  BatchSize step_size() const {
    return counts_sentences() ? BatchSize{sentences, "sentences"} : BatchSize{tokens, "tokens"};
  }
  // Returns these settings with steps of that size.
  BatchConfig with(const BatchSize& size) const;

  void describe(Fields& f) {
    f("tokens", &tokens, AtLeast{0},
      "target tokens of one optimizer step, all ranks together; 0: by sentences or per_rank");
    f("accumulate", &accumulate, AtLeast{1}, "micro-batches that each rank adds up in one step");
    f("by_length", &by_length, Any{}, "sentences of similar length in one step");
    f("pool_steps", &pool_steps, AtLeast{1}, "steps whose sentences are sorted together");
    f("sentences", &sentences, AtLeast{0},
      "sentence pairs of one optimizer step, all ranks together, in place of tokens; 0: by tokens");
    f("longest", &longest, AtLeast{0},
      "pieces of a sentence that training keeps, the rest is cut off; 0: all");
    per_rank.describe(f, per_rank_counts == "tokens" ? "target tokens" : "sentence pairs");
    f("per_rank_counts", &per_rank_counts, OneOf{{"tokens", "sentences"}}, "what per_rank counts");
    shares.describe(f);
  }
};

// The tokens of one sentence pair as the model sees them (with special tokens).
struct PairLength {
  int32_t source = 0, target = 0;
};

using StepPlan = std::vector<int32_t>;  // indices of sentence pairs

// Returns the steps of one epoch, which contain every pair exactly once. With by_length, the
// shuffled corpus is cut into pools of `pool_steps` steps, each pool is sorted by length, and the
// steps are shuffled again. Where its first steps were of other sizes, `done`, they are planned as
// they were, and the rest is planned from the pairs that are in none of them.
std::vector<StepPlan> plan_epoch(std::span<const PairLength> lengths, const BatchConfig& config,
                                 uint64_t seed, int64_t epoch,
                                 const std::vector<EpochStretch>& done = {});

// Splits a step into parts with tokens nearly in proportion to their weights: takes the longest
// sentence first and adds it to the part that is filled least (StepParts::spread). A part is empty
// only if there are fewer sentences than parts.
std::vector<std::vector<int32_t>> split_step(const StepPlan& step,
                                             std::span<const PairLength> lengths,
                                             const StepParts& parts);

}  // namespace lockstep
