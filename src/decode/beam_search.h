// Implements beam search (Sutskever et al. 2014, section 3.2) with the length norm of Wu et al.
// 2016 (section 7).
//
// The rules, for a beam of k:
//  - Every step considers the 2k best continuations of a sentence's live hypotheses, best first.
//    One that ends (</s>) is finished if it is among the first k; the first k of the others stay
//    live. So k hypotheses stay live: finishing one does not narrow the beam.
//  - The score of a finished hypothesis is log-probability / ((5 + length) / 6)^length_penalty,
//    with </s> counted in length (another norm: length_norm()). Greater penalties favour longer
//    translations; 0 switches it off.
//  - A sentence is done at its length limit, or when not even probability 1 from here to that limit
//    would lift a live hypothesis above the n-th best finished one, where n is the number asked for
//    (an exact bound: log-probability only falls); or, by `stop`,
//      all_beams  when k have finished and the best live one, scored at its present length, is not
//                 better than the worst of these (waiting gains 0.8 BLEU over `first`),
//      first      when the same holds for the n best finished ones,
//      bound      by the exact bound alone: the longest search,
//      t2t        when not even probability 1 would lift a live one above the worst finished one
//                 (Tensor2Tensor, OpenSeq2Seq); then all of the 2k that end are finished,
//      full       when k have finished, whatever is live (early_stopping of transformers).
//  - If fewer than n have finished at the length limit, live ones are used as they are; with
//    length_norm = "tokens" they count as finished there.
// A beam of 1 is greedy search by the same rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/decoder.h"

namespace lockstep {

// <pad>, <s> and <unk> are never produced unless `never` says otherwise; </s> ends a hypothesis.
struct SpecialIds {
  int32_t pad = 0, eos = 1, bos = 2, unk = 3;
  // What every source begins with, such as the token of its language.
  std::vector<int32_t> source_prefix = {};
  // What the decoder reads before `bos`, which is then predicted; absent: what model.start asks
  // for.
  std::optional<std::vector<int64_t>> primer = {};
  std::optional<std::vector<int32_t>> never = {};  // ids that are never produced, ascending
  bool ends_at_limit = false;  // </s> is certain at the length limit (forced_eos_token_id)
  bool renormalizes = false;   // probabilities are normalised without these ids
};

// Keys of [decoding], described in tasks/translator.h.
struct BeamOptions {
  int64_t beam_size = 4;
  double length_penalty = 0.6;
  // A hypothesis has at most factor * source pieces + extra tokens, including </s>.
  double max_length_factor = 2.0;
  int64_t max_length_extra = 10;
  int64_t min_length = 0;       // number of other tokens that must precede </s>
  int64_t batch_tokens = 1024;  // source tokens decoded together, including padding
  std::string stop = "all_beams";
  std::string length_norm = "wu";
  // Tokens that every translation has besides those that are searched for: transformers counts
  // them. No key sets it.
  int64_t given_tokens = 0;
};

struct Hypothesis {
  std::vector<int32_t> ids;    // without <s> and </s>
  double score = 0;            // as above; ranks the hypotheses of one sentence
  double log_probability = 0;  // of ids and </s>
};

// Returns ((5 + length) / 6)^length_penalty, or by options.length_norm (length +
// given_tokens)^length_penalty, with </s> counted in length.
double length_norm(const BeamOptions& options, int64_t length);
// Returns the length limit for a source of that many pieces, including </s>; at least 1.
int64_t max_output_length(const BeamOptions& options, int64_t source_length);
// Returns the ids that are never produced, ascending, without special pieces that do not exist.
// With `no_end` they include </s>.
std::vector<int32_t> excluded_ids(const SpecialIds& special, bool no_end);

// Returns the `n_best` best hypotheses of every source, best first, in the order of the sources.
// `sources` are pieces without special ids: </s> is appended here, as in training. An empty source
// gives one empty hypothesis (score 0). REQUIRES 1 <= n_best <= beam_size; a vocabulary of few
// tokens or a low length limit may give fewer. Sentences are sorted by length and decoded in
// batches; the model's threads share the batches. Which sentences are batched
// together does not depend on the number of threads. With packed weights a sentence's result does
// not depend on the others in any bit; otherwise only through the rounding of matrix products of
// different heights.
std::vector<std::vector<Hypothesis>> beam_search(const DecodingModel& model,
                                                 const std::vector<std::vector<int32_t>>& sources,
                                                 const SpecialIds& special,
                                                 const BeamOptions& options, int64_t n_best = 1);

}  // namespace lockstep
