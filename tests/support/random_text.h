// Makes random lines on which text metrics differ.

#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"

namespace lockstep {

// Makes random lines of text that tokenizers treat differently: punctuation between letters and
// digits, white space and digits of Unicode, entities, capitals with unusual lower-case forms.
class RandomText {
 public:
  explicit RandomText(uint32_t seed) : random_(seed) {}

  int64_t up_to(int64_t most) { return static_cast<int64_t>(random_() % (most + 1)); }

  std::string line() {
    std::string out;
    for (int64_t left = up_to(30); left > 0; --left) out += piece();
    return out;
  }

  // Returns the line with some pieces replaced, so that n-grams match partly.
  std::string variant(const std::string& line) {
    std::string out;
    for (const std::string& word : split(line, ' ')) {
      if (up_to(5) != 0) out += (out.empty() ? "" : " ") + (up_to(5) == 0 ? piece() : word);
    }
    return out;
  }

  // Returns the same words with some runs of them moved elsewhere.
  std::string shuffled(const std::string& line) {
    std::vector<std::string> words = split(line, ' ');
    for (int64_t moves = up_to(3); moves > 0; --moves) {
      auto last = static_cast<int64_t>(words.size());
      int64_t a = up_to(last), b = up_to(last), c = up_to(last);
      if (a > b) std::swap(a, b);
      if (b > c) std::swap(b, c);
      if (a > b) std::swap(a, b);
      std::rotate(words.begin() + a, words.begin() + b, words.begin() + c);
    }
    return join(words, " ");
  }

 private:
  std::string piece() {
    static const std::vector<std::string> kPieces{
        "the",      "cat",  "a",  "Haus",   "STRASSE", "ÄÖÜ",    "Größe",   "İstanbul", "ΟΔΟΣ",
        "Σ",        "ẞ",    "5",  "1,000",  "3.14",    "٣",      "५",       "²",        "½",
        "Ⅳ",        ".",    ",",  "-",      "--",      "...",    "'",       "\"",       "„",
        "“",        "–",    "%",  "€",      "$",       "+",      "°",       "@",        "/",
        "\\",       "_",    "~",  "&quot;", "&amp;",   "&lt;",   "&gt;",    "&",        "<skipped>",
        "&amp;lt;", "日本", "語", "。",     "\u00A0",  "\u3000", "\u2009",  "\u200B",   "\u0085",
        "\u2028",   "\x1F", "\t", "-\n",    "\n",      "😀",      "e\u0301", "5-",       "-5",
        "a.b",      "x,y",  ".5", "5.",     "(",       ")",      "!",       "?",        ":"};
    const std::string& out = kPieces[static_cast<std::size_t>(up_to(kPieces.size() - 1))];
    return up_to(2) == 0 ? out : out + " ";
  }

  std::mt19937 random_;
};

}  // namespace lockstep
