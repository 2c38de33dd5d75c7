// Which sentences make which step: a pure function of (seed, epoch), equal on every rank, so that
// no rank has to be told anything and a resume continues at the exact step.
//
// A step is a set of sentences with at most `tokens` target tokens in all (or of so many
// sentences), over all ranks and accumulated micro-batches; how it is split among them does not
// change what it averages over.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace lockstep {

struct BatchConfig {
  int64_t tokens = 4096;   // target tokens of one optimizer step, over all ranks
  int64_t accumulate = 1;  // micro-batches that each rank computes one after the other
  bool by_length = true;
  int64_t pool_steps = 50;
  int64_t sentences = 0;
  int64_t longest = 0;

  void describe(Fields& f) {
    f("tokens", &tokens, AtLeast{1}, "target tokens of one optimizer step, all ranks together");
    f("accumulate", &accumulate, AtLeast{1}, "micro-batches that each rank adds up in one step");
    f("by_length", &by_length, Any{}, "sentences of similar length in one step");
    f("pool_steps", &pool_steps, AtLeast{1}, "steps whose sentences are sorted together");
    f("sentences", &sentences, AtLeast{0},
      "sentence pairs of one optimizer step, all ranks together, in place of tokens; 0: by tokens");
    f("longest", &longest, AtLeast{0},
      "pieces of a sentence that training keeps, the rest is cut off; 0: all");
  }
};

// Tokens of one sentence pair as the model sees them (special tokens included).
struct PairLength {
  int32_t source = 0, target = 0;
};

using StepPlan = std::vector<int32_t>;  // indices of sentence pairs

// The steps of one epoch: every pair exactly once. With by_length, the shuffled corpus is cut into
// pools of `pool_steps` steps, each sorted by length, and the order of the steps is shuffled again.
std::vector<StepPlan> plan_epoch(std::span<const PairLength> lengths, const BatchConfig& config,
                                 uint64_t seed, int64_t epoch);

// Splits a step into `parts` with nearly equal numbers of tokens (longest first, each to the part
// with the least). A part is empty when there are fewer sentences than parts.
std::vector<std::vector<int32_t>> split_step(const StepPlan& step,
                                             std::span<const PairLength> lengths, int64_t parts);

}  // namespace lockstep
