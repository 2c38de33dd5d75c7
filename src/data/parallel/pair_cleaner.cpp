#include "data/parallel/pair_cleaner.h"

#include <algorithm>

#include "base/text.h"

namespace lockstep {

namespace {

constexpr int64_t kLongestToken = 1000;  // characters
constexpr int64_t kFewWords = 4;         // shorter copies may be names

// Returns the bytes of the white-space character that starts at `at`, or 0. Beyond ASCII these are
// U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F and U+3000.
std::size_t space_at(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  unsigned char c = byte(0);
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  if (c == 0xC2) return byte(1) == 0x85 || byte(1) == 0xA0 ? 2 : 0;
  if (c == 0xE1) return byte(1) == 0x9A && byte(2) == 0x80 ? 3 : 0;
  if (c == 0xE3) return byte(1) == 0x80 && byte(2) == 0x80 ? 3 : 0;
  if (c != 0xE2) return 0;
  unsigned char last = byte(2);
  bool general = byte(1) == 0x80 &&
                 ((last >= 0x80 && last <= 0x8A) || last == 0xA8 || last == 0xA9 || last == 0xAF);
  return general || (byte(1) == 0x81 && last == 0x9F) ? 3 : 0;
}

// Returns whether a byte may start white space other than the space itself.
constexpr bool may_be_space(unsigned char c) {
  return (c >= '\t' && c <= '\r') || c == 0xC2 || c == 0xE1 || c == 0xE2 || c == 0xE3;
}

bool has_long_word(std::string_view text) {
  if (text.size() <= kLongestToken) return false;
  int64_t characters = 0;
  for (char c : text) {
    characters = c == ' ' ? 0 : characters + ((static_cast<unsigned char>(c) & 0xC0) != 0x80);
    if (characters > kLongestToken) return true;
  }
  return false;
}

}  // namespace

void squeeze_spaces(std::string_view text, std::string& out) {
  out.clear();
  bool open = false;  // a space must precede the next word
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && text[end] != ' ' &&
           !(may_be_space(static_cast<unsigned char>(text[end])) && space_at(text, end) > 0)) {
      ++end;
    }
    if (end > i) {
      if (open) out += ' ';
      out.append(text.substr(i, end - i));
      open = true;
    }
    i = end;
    if (i < text.size()) i += space_at(text, i);
  }
}

PairCleaner::PairCleaner(const CleanerOptions& options) : options_(options) {
  if (!options.check_language) return;
  source_check_ = LanguageCheck::of(options.source_language);
  target_check_ = LanguageCheck::of(options.target_language);
}

std::optional<PairView> PairCleaner::clean(std::string_view source, std::string_view target,
                                           DropCounts& dropped) {
  if (invalid_utf8_at(source) || invalid_utf8_at(target)) {
    ++dropped["not valid UTF-8"];
    return std::nullopt;
  }
  auto take = [&](std::string_view text, std::string& out) {
    squeeze_spaces(text, out);
    if (!options_.drop_bars || out.find('|') == std::string::npos) return;
    std::string without = out;
    std::erase(without, '|');
    squeeze_spaces(without, out);
  };
  take(source, source_);
  take(target, target_);
  PairView pair{source_, target_};
  if (!is_usable(pair, dropped)) return std::nullopt;
  return pair;
}

bool PairCleaner::is_usable(PairView pair, DropCounts& dropped) const {
  if (std::optional<std::string> reason = reason_to_drop(pair, options_.rules)) {
    ++dropped[*reason];
    return false;
  }
  if (has_long_word(pair.source) || has_long_word(pair.target)) {
    ++dropped["a word of more than 1000 characters"];
    return false;
  }
  if (source_check_ && source_check_->speaks_another(pair.source)) {
    ++dropped["source in another language"];
    return false;
  }
  if (target_check_ && target_check_->speaks_another(pair.target)) {
    ++dropped["target in another language"];
    return false;
  }
  if (options_.check_language && pair.source == pair.target &&
      count_words(pair.source) >= kFewWords) {
    ++dropped["not translated"];
    return false;
  }
  return true;
}

}  // namespace lockstep
