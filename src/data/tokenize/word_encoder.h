// Subwords at the speed of a table: SentencePiece's byte-pair encoding never joins two words, so
// each frequent word is encoded once, by SentencePiece, and looked up ever after.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/tokenize/subword.h"
#include "data/tokenize/word_table.h"

namespace lockstep {

// Whether this model (the content of a .model file) encodes a line as it encodes the line's words
// one by one. Looked up, not guessed: it is byte-pair encoding, a word starts with its white space,
// no piece reaches over white space, and no rule of the normalisation spans a space.
bool encodes_word_by_word(std::string_view model);

class WordEncoder {
 public:
  static constexpr int64_t kMostWords = 4'000'000;

  // Encodes the most frequent words on all cores. Keeps a reference to `subword`.
  WordEncoder(const Subword& subword, const WordCounts& counts, int64_t most_words = kMostWords);

  // Appends the ids of Subword::encode(line). Safe from several threads.
  void encode(std::string_view line, std::vector<int32_t>& ids) const;

 private:
  const Subword& subword_;
  bool by_word_;
  WordTable words_;
  std::vector<std::size_t> begins_;  // of word n in ids_; one more at the end
  std::vector<int32_t> ids_;
};

}  // namespace lockstep
