// Samples translations at random from the network's distribution, token by token, instead of
// searching for them, with temperature, the top_k most likely tokens (Fan et al. 2018) and the
// top_p nucleus (Holtzman et al. 2020).
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "config/fields.h"
#include "decode/beam_search.h"

namespace lockstep {

struct SamplingOptions {
  double temperature = 1.0;
  int64_t top_k = 0;   // 0: all
  double top_p = 1.0;  // 1: all
  int64_t seed = 1;

  void describe(Fields& f) {
    f("temperature", &temperature, Above{0}, "of samples: logits are divided by it");
    f("top_k", &top_k, AtLeast{0}, "samples come from so many most likely tokens; 0: all");
    f("top_p", &top_p, Above{0}, "and from the fewest whose probabilities reach this; 1: all");
    f("seed", &seed, AtLeast{0}, "of samples");
  }
};

// Picks one token by logits [vocabulary], never one of `excluded`. `uniform` in
// [0, 1) determines which.
int32_t sample_token(const float* logits, int64_t vocabulary, const SamplingOptions& options,
                     const std::vector<int32_t>& excluded, double uniform);

// Returns `count` samples of every source, in the order drawn; all else is as in beam_search() (of
// `options` only the lengths, penalty and batch size matter). The k-th sample of a sentence depends
// only on the seed, k and the sentence itself, and not on the other sentences, their order, the
// batches, the threads or the ranks. (Equal sentences have equal samples.) Log-probabilities are
// the network's, without temperature or truncation.
std::vector<std::vector<Hypothesis>> sample_translations(
    const DecodingModel& model, const std::vector<std::vector<int32_t>>& sources,
    const SpecialIds& special, const BeamOptions& options, const SamplingOptions& sampling,
    int64_t count);

}  // namespace lockstep
