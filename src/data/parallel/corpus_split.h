// Divides sentence pairs among train, dev and test so that no held-out sentence, or near copy of
// one, is trained on: on either side, in either language.
#pragma once

#include <cstdint>
#include <vector>

#include "data/manifest/manifest.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

struct SplitRules {
  int64_t dev = 1000, test = 1000;  // pairs at most; neither takes more than a 20th of the corpus
  int64_t min_words = 3;            // of a held-out pair, on both sides: shorter ones test nothing
  double near_copy = 0.7;           // Jaccard index of character trigrams from which it counts
  uint64_t seed = 1;
};

// Indices into the pairs. Train is shuffled, dev and test are in the order of their hashes.
struct CorpusSplit {
  std::vector<int64_t> train, dev, test;
  DropCounts dropped;  // pairs that are in none of the three
};

// Pairs that share a source or a target (comparison_key) form a group, also over several steps. A
// group belongs to one split: the groups with the smallest hashes of (seed, key) are held out, one
// pair of each; groups of more than 8 pairs stay in train. What is a near copy of a held-out
// sentence is dropped, and so are repetitions of a whole pair. The result depends on pairs and
// rules only, not on the number of threads.
CorpusSplit split_corpus(const SentencePairs& pairs, const SplitRules& rules);

// The order of training pairs for a seed: the same on every machine.
void shuffle_pairs(std::vector<int64_t>& order, uint64_t seed);

// How many of `held_out` have a source or a target that is also in `train`, but for case, digits,
// punctuation and spacing.
int64_t count_overlap(const SentencePairs& train, const SentencePairs& held_out);

}  // namespace lockstep
