// Byte-pair encoding (Sennrich et al. 2016, section 3.2), learned as SentencePiece learns it, from
// words and their counts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct BpeWord {
  std::u32string text;  // normalised; its white space is U+2581, at its start only
  int64_t count = 0;
};

// Stands for a character that is not in the alphabet: no piece has it.
inline constexpr char32_t kOutsideAlphabet = 0x2585;

// The pieces of the first `merges` merges, fewer when nothing is left to merge. Each merge joins
// the most frequent pair of neighbours; of equally frequent ones the shorter, then the smaller in
// the order of UTF-8. A piece has at most 16 characters and one script (that of Han, Hiragana and
// Katakana counts as one; what inherits its script fits any), and the same string is a piece once.
std::vector<std::string> learn_merges(const std::vector<BpeWord>& words, int64_t merges);

// The characters that get a piece of their own, the most frequent first, ties by code point:
// as many as make up `coverage` of all occurrences.
std::vector<std::pair<char32_t, int64_t>> alphabet_of(const std::vector<BpeWord>& words,
                                                      double coverage);

}  // namespace lockstep
