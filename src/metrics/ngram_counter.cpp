#include "metrics/ngram_counter.h"

#include <algorithm>
#include <cstdlib>

#include "metrics/line_text.h"

namespace lockstep {

std::size_t PairNumbering::place(uint64_t key) const {
  // Fibonacci hashing: the upper half has the best mixed bits.
  std::size_t at = (key * 0x9E3779B97F4A7C15u) >> 32;
  while (true) {
    at &= slots_.size() - 1;
    const Slot& slot = slots_[at];
    if (slot.generation != generation_ || slot.key == key) return at;
    ++at;
  }
}

uint32_t PairNumbering::number(uint32_t first, uint32_t second) {
  if (2 * std::size_t{size_} >= slots_.size()) grow();
  uint64_t key = uint64_t{first} << 32 | second;
  Slot& slot = slots_[place(key)];
  if (slot.generation != generation_) slot = {key, generation_, size_++};
  return slot.number;
}

void PairNumbering::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.generation == generation_) slots_[place(slot.key)] = slot;
  }
}

void NgramCounter::read(std::string_view line, Text& text) {
  split_unicode_words(line, split_);
  text.tokens.clear();
  for (std::string_view word : split_) {
    auto number = static_cast<uint32_t>(words_.size());
    text.tokens.push_back(words_.try_emplace(word, number).first->second);
  }
}

// Makes the n-grams of `order` from those of order - 1.
void NgramCounter::lengthen(Text& text, int order) {
  if (order == 1) {
    text.ngrams = text.tokens;
    return;
  }
  if (text.ngrams.empty()) return;
  text.ngrams.pop_back();
  for (std::size_t i = 0; i < text.ngrams.size(); ++i) {
    text.ngrams[i] = pairs_.number(text.ngrams[i], text.tokens[i + order - 1]);
  }
}

// Counts clipped matches: an n-gram counts at most as often as it occurs in the reference that has
// most of it.
int64_t NgramCounter::count_matches(std::size_t reference_count) {
  std::size_t numbers = std::max<std::size_t>(words_.size(), pairs_.size());
  in_hypothesis_.assign(numbers, 0);
  in_best_.assign(numbers, 0);
  for (uint32_t ngram : texts_[0].ngrams) ++in_hypothesis_[ngram];
  for (std::size_t r = 1; r <= reference_count; ++r) {
    in_reference_.assign(numbers, 0);
    for (uint32_t ngram : texts_[r].ngrams) {
      in_best_[ngram] = std::max(in_best_[ngram], ++in_reference_[ngram]);
    }
  }
  int64_t matches = 0;
  for (std::size_t i = 0; i < numbers; ++i) matches += std::min(in_hypothesis_[i], in_best_[i]);
  return matches;
}

BleuStatistics NgramCounter::count(std::string_view hypothesis,
                                   const std::vector<std::string>& references, int max_order) {
  words_.clear();
  texts_.resize(std::max(texts_.size(), references.size() + 1));
  read(hypothesis, texts_[0]);
  auto length = static_cast<int64_t>(texts_[0].tokens.size());
  BleuStatistics out;
  out.hypothesis_tokens = length;
  int64_t best_difference = INT64_MAX;
  for (std::size_t r = 0; r < references.size(); ++r) {
    read(references[r], texts_[r + 1]);
    auto candidate = static_cast<int64_t>(texts_[r + 1].tokens.size());
    int64_t difference = std::abs(length - candidate);
    bool nearer = difference < best_difference ||
                  (difference == best_difference && candidate < out.reference_tokens);
    if (!nearer) continue;
    best_difference = difference;
    out.reference_tokens = candidate;
  }
  for (int order = 1; order <= max_order; ++order) {
    pairs_.clear();
    for (std::size_t t = 0; t <= references.size(); ++t) lengthen(texts_[t], order);
    out.totals[order - 1] = static_cast<int64_t>(texts_[0].ngrams.size());
    out.matches[order - 1] = count_matches(references.size());
  }
  return out;
}

}  // namespace lockstep
