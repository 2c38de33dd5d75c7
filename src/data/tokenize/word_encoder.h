// Encodes subwords at the speed of a table lookup. SentencePiece's byte-pair encoding never joins
// two words, so SentencePiece encodes each frequent word once, and its ids are looked up
// afterwards.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/tokenize/subword.h"
#include "data/tokenize/word_table.h"

namespace lockstep {

// Returns whether this model (the content of a .model file) encodes a line like the words of the
// line one by one. This is verified: the model is byte-pair encoding, a word starts with its white
// space, no piece spans white space, and no normalization rule spans a space.
bool encodes_word_by_word(std::string_view model);

class WordEncoder {
 public:
  static constexpr int64_t kMostWords = 4'000'000;

  // Encodes the most frequent words on all cores. Keeps a reference to `subword`.
  WordEncoder(const Subword& subword, const WordCounts& counts, int64_t most_words = kMostWords);

  // Appends the ids of Subword::encode(line). Several threads may call it.
  void encode(std::string_view line, std::vector<int32_t>& ids) const;

 private:
  const Subword& subword_;
  bool by_word_;
  WordTable words_;
  std::vector<std::size_t> begins_;  // start of word n in ids_, and one more at the end
  std::vector<int32_t> ids_;
};

}  // namespace lockstep
