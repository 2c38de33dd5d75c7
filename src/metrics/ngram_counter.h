// Counts the n-grams that a hypothesis shares with its references. The counts are exact: hash
// collisions are resolved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "metrics/bleu.h"

namespace lockstep {

// Assigns the numbers 0, 1, ... to pairs of numbers. A hash table with open addressing that is
// cleared in constant time.
class PairNumbering {
 public:
  void clear() {
    ++generation_;
    size_ = 0;
  }
  uint32_t size() const { return size_; }
  uint32_t number(uint32_t first, uint32_t second);  // a new pair gets the next number
  uint32_t find(uint32_t first, uint32_t second, uint32_t otherwise) const {
    const Slot& slot = slots_[place(uint64_t{first} << 32 | second)];
    return slot.generation == generation_ ? slot.number : otherwise;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    uint64_t generation = 0;  // in use if equal to the table's
    uint32_t number = 0;
  };
  std::size_t place(uint64_t key) const;
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(1024);  // a power of two
  uint64_t generation_ = 1;
  uint32_t size_ = 0;
};

// Scratch space that is reused for many segments. Not thread-safe.
class NgramCounter {
 public:
  // Returns the statistics of one segment for orders 1 to max_order. Texts are split at white
  // space.
  BleuStatistics count(std::string_view hypothesis, const std::vector<std::string>& references,
                       int max_order);

 private:
  // A number identifies an n-gram. The number of an n-gram of n + 1 tokens is that of the pair (the
  // n-gram of its first n tokens, its last token). So n-grams are equal exactly when their numbers
  // are.
  struct Text {
    std::vector<uint32_t> tokens;  // word numbers
    std::vector<uint32_t> ngrams;  // of the current order, by position
  };
  void read(std::string_view line, Text& text);
  void lengthen(Text& text, int order);
  int64_t count_matches(std::size_t reference_count);

  std::unordered_map<std::string_view, uint32_t> words_;
  PairNumbering pairs_;
  std::vector<std::string_view> split_;
  std::vector<Text> texts_;  // the hypothesis, then its references
  std::vector<int32_t> in_hypothesis_, in_reference_, in_best_;  // counts by n-gram number
};

}  // namespace lockstep
