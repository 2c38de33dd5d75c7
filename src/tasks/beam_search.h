// Beam search (Sutskever et al. 2014, section 3.2) that waits for all beams, with the length norm
// of Wu et al. 2016 (section 7), over a Transformer.
//
// The rules, for a beam of k:
//  - In every step the 2k best continuations of a sentence's live hypotheses are looked at, best
//    first. One that ends (</s>) is finished if it is among the first k; the first k of the others
//    live on. So live hypotheses stay k: finishing one does not narrow the beam.
//  - The score of a finished hypothesis is log-probability / ((5 + length) / 6)^length_penalty,
//    with </s> counted in length. Greater penalties favour longer translations; 0 switches it off.
//  - A sentence is done when k hypotheses have finished and the best live one, scored at its
//    present length, is not better than the worst of the k best finished (waiting for all beams
//    gains 0.8 BLEU over stopping at the first); or when not even certainty from here to the
//    length limit would lift a live one above the best finished (an exact bound: log-probability
//    only falls); or at the length limit. There, if nothing has finished, the best live one is
//    taken as it is.
// A beam of 1 is greedy search by the same rules.
#pragma once

#include <cstdint>
#include <vector>

#include "config/fields.h"
#include "models/transformer.h"
#include "nn/numerics.h"

namespace lockstep {

// <pad>, <s> and <unk> are never produced; </s> ends a hypothesis.
struct SpecialIds {
  int32_t pad = 0, eos = 1, bos = 2, unk = 3;
};

struct BeamOptions {
  int64_t beam_size = 4;
  double length_penalty = 0.6;
  // A hypothesis has at most factor * source pieces + extra tokens, </s> counted.
  double max_length_factor = 2.0;
  int64_t max_length_extra = 10;
  int64_t min_length = 0;       // </s> may not come before so many other tokens
  int64_t batch_tokens = 1024;  // source tokens decoded together, padding counted

  void describe(Fields& f) {
    f("beam_size", &beam_size, AtLeast{1}, "hypotheses kept; 1 is greedy search");
    f("length_penalty", &length_penalty, AtLeast{0}, "exponent of ((5 + length) / 6)");
    f("max_length_factor", &max_length_factor, AtLeast{0}, "longest output per source piece");
    f("max_length_extra", &max_length_extra, AtLeast{1}, "and so many tokens more");
    f("min_length", &min_length, AtLeast{0}, "tokens before </s> may come");
    f("batch_tokens", &batch_tokens, AtLeast{1}, "source tokens decoded together");
  }
};

struct Hypothesis {
  std::vector<int32_t> ids;    // without <s> and </s>
  double score = 0;            // as above; what hypotheses of one sentence are ranked by
  double log_probability = 0;  // of ids and </s>
};

// The best hypothesis of every source, in their order. `sources` are pieces without special ids:
// </s> is appended here, as in training. An empty source gives an empty hypothesis (score 0).
// Sentences are sorted by length and decoded in batches; on the CPU the batches are shared out to
// at::get_num_threads() threads. Which sentences come together does not depend on the number of
// threads, and a sentence's result does not depend on the others but for the rounding of matrix
// products of different heights.
std::vector<Hypothesis> beam_search(const Transformer& model,
                                    const std::vector<std::vector<int32_t>>& sources,
                                    const SpecialIds& special, const BeamOptions& options,
                                    const Numerics& numerics);

}  // namespace lockstep
