// BERT's normalization (Devlin et al. 2018) of single characters, as the `tokenizers` library 0.22
// computes it: its tables of categories are those of Unicode 8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class CharacterKind : uint8_t {
  kRemoved,    // control characters, U+FFFD; accents if they are stripped
  kSeparator,  // white space
  kAlone,      // a word of its own: punctuation, Chinese characters
  kLetter,     // part of a word
};

// One character of the normalized text.
struct NormalCharacter {
  CharacterKind kind = CharacterKind::kRemoved;
  char32_t code_point = 0;
};

struct AlphabetOptions {
  bool lowercase = true;
  bool strip_accents = true;
  bool chinese_apart = true;  // each Chinese character is a word of its own
};

// Returns the normalized characters for `c`, in order; none if it is removed. Normalization looks
// at one character at a time.
std::vector<NormalCharacter> normalize_character(char32_t c, const AlphabetOptions& options);

}  // namespace lockstep
