// Learns byte-pair encoding (Sennrich et al. 2016, section 3.2) like SentencePiece, from words and
// their counts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct BpeWord {
  std::u32string text;  // normalized; white space is U+2581 and only at its start
  int64_t count = 0;
};

// Stands for characters outside the alphabet. No piece contains it.
inline constexpr char32_t kOutsideAlphabet = 0x2585;

// Returns the pieces of the first `merges` merges, or fewer if nothing remains to be merged. Each
// merge joins the most frequent pair of neighbours; ties go to the shorter, then to the smaller one
// in the order of UTF-8. A piece has at most 16 characters of one script. (Han, Hiragana and
// Katakana count as one script; characters that inherit their script fit any.) Equal strings are
// one piece.
std::vector<std::string> learn_merges(const std::vector<BpeWord>& words, int64_t merges);

// Returns the characters that get a piece of their own, the most frequent first, ties by code
// point: as many as make up `coverage` of all occurrences.
std::vector<std::pair<char32_t, int64_t>> alphabet_of(const std::vector<BpeWord>& words,
                                                      double coverage);

}  // namespace lockstep
