// Divides sentence pairs among train, dev and test so that training never sees a held-out sentence
// or a near copy of one, on either side.
#pragma once

#include <cstdint>
#include <vector>

#include "data/manifest/manifest.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

struct SplitRules {
  int64_t dev = 1000, test = 1000;  // the most pairs; neither exceeds a 20th of the corpus
  int64_t min_words = 3;            // of both sides of a held-out pair: shorter ones test nothing
  double near_copy = 0.7;           // the least Jaccard index of character trigrams of a near copy
  uint64_t seed = 1;
};

// Indices into the pairs. Train is shuffled; dev and test are in the order of their hashes.
struct CorpusSplit {
  std::vector<int64_t> train, dev, test;
  DropCounts dropped;  // pairs that are in none of the three splits
};

// Pairs that share a source or a target (comparison_key) form a group, also transitively. A group
// belongs to one split: the groups with the smallest hashes of (seed, key) are held out, with one
// pair each; groups of more than 8 pairs stay in train. Near copies of held-out sentences and
// repetitions of whole pairs are dropped. The result depends only on pairs and rules, not on the
// number of threads.
CorpusSplit split_corpus(const SentencePairs& pairs, const SplitRules& rules);

// Shuffles training pairs by a seed, in the same way on every machine.
void shuffle_pairs(std::vector<int64_t>& order, uint64_t seed);

// Returns how many pairs of `held_out` have a source or a target that is also in `train`, where
// case, digits, punctuation and spacing do not count.
int64_t count_overlap(const SentencePairs& train, const SentencePairs& held_out);

}  // namespace lockstep
