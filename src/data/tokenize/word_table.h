// Distinct words with a number each, and how often each occurs, in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace lockstep {

// Calls visit(word) for every word of a line. Only spaces (U+0020) separate words.
template <typename Visit>
void for_each_word(std::string_view line, const Visit& visit) {
  while (!line.empty()) {
    std::size_t end = line.find(' ');
    if (end == std::string_view::npos) end = line.size();
    if (end > 0) visit(line.substr(0, end));
    line.remove_prefix(end < line.size() ? end + 1 : end);
  }
}

// A set of words, numbered from 0 in the order of insertion. Several threads may read it.
class WordTable {
 public:
  WordTable();

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  std::string_view operator[](int64_t number) const {
    return words_[static_cast<std::size_t>(number)];
  }
  int64_t find(std::string_view word) const;  // -1 when absent
  int64_t add(std::string_view word);         // returns its number, old or new

 private:
  struct Slot {
    uint64_t hash = 0;
    int64_t number = -1;
  };
  static uint64_t hash(std::string_view word);
  std::size_t slot_of(std::string_view word, uint64_t hash) const;
  void grow();

  std::vector<Slot> slots_;  // a power of two, at most two thirds full
  std::vector<std::string_view> words_;
  std::vector<std::unique_ptr<char[]>> blocks_;  // hold the text; never move
  std::size_t block_left_ = 0;
  char* block_next_ = nullptr;
};

struct CountedWord {
  std::string_view word;
  int64_t count;
};

// Counts words. If there are more than `most_words` distinct words, the rarest are forgotten.
class WordCounts {
 public:
  static constexpr int64_t kMostWords = 8'000'000;
  explicit WordCounts(int64_t most_words = kMostWords) : most_words_(most_words) {}

  void add(std::string_view word, int64_t count = 1);
  void add_line(std::string_view line) {
    for_each_word(line, [&](std::string_view word) { add(word); });
  }
  void add(const WordCounts& other);

  int64_t size() const { return words_.size(); }
  // Returns the most frequent words first, ties in byte order. The views refer to this object.
  std::vector<CountedWord> sorted() const;

 private:
  void forget_rarest();

  int64_t most_words_;
  WordTable words_;
  std::vector<int64_t> counts_;
};

// Write and read lines "count SPACE word", the most frequent first.
void write_word_counts(const fs::path& path, const WordCounts& counts);
WordCounts read_word_counts(const fs::path& path);  // throws DataError

}  // namespace lockstep
