// Counts the n-grams that a hypothesis shares with its references, exactly (no hash is trusted).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "metrics/bleu.h"

namespace lockstep {

// Numbers pairs of numbers from 0 on; open addressing, emptied in constant time.
class PairNumbering {
 public:
  void clear() {
    ++generation_;
    size_ = 0;
  }
  uint32_t size() const { return size_; }
  uint32_t number(uint32_t first, uint32_t second);  // the next unused one for a new pair
  uint32_t find(uint32_t first, uint32_t second, uint32_t otherwise) const {
    const Slot& slot = slots_[place(uint64_t{first} << 32 | second)];
    return slot.generation == generation_ ? slot.number : otherwise;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    uint64_t generation = 0;  // the slot is in use when this is the table's
    uint32_t number = 0;
  };
  std::size_t place(uint64_t key) const;
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(1024);  // a power of two
  uint64_t generation_ = 1;
  uint32_t size_ = 0;
};

// Scratch space for many segments, one after the other. For one thread.
class NgramCounter {
 public:
  // The statistics of one segment, orders 1 to max_order; texts are split at white space.
  BleuStatistics count(std::string_view hypothesis, const std::vector<std::string>& references,
                       int max_order);

 private:
  // An n-gram is known by a number; that of n + 1 tokens is the number of the pair (the n-gram of
  // its first n tokens, its last token). So equal n-grams have equal numbers and others have not.
  struct Text {
    std::vector<uint32_t> tokens;  // numbers of the words
    std::vector<uint32_t> ngrams;  // of the current order, by start
  };
  void read(std::string_view line, Text& text);
  void lengthen(Text& text, int order);
  int64_t count_matches(std::size_t reference_count);

  std::unordered_map<std::string_view, uint32_t> words_;
  PairNumbering pairs_;
  std::vector<std::string_view> split_;
  std::vector<Text> texts_;  // the hypothesis, then its references
  std::vector<int32_t> in_hypothesis_, in_reference_, in_best_;  // counts by number of the n-gram
};

}  // namespace lockstep
