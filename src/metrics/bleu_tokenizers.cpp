#include "metrics/bleu_tokenizers.h"

#include <unicode/uchar.h>

#include <cstddef>

namespace lockstep {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Bytes of the white-space character that starts at `at`, 0 when another one does. The set is that
// of Python's str.isspace(), which has U+001C to U+001F beyond Unicode's White_Space.
std::size_t space_length(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  unsigned first = byte(0);
  if (first < 0x80) return (first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x20);
  if (first == 0xC2) return byte(1) == 0x85 || byte(1) == 0xA0 ? 2 : 0;
  if (first < 0xE1 || first > 0xE3) return 0;
  unsigned rest = byte(1) << 8 | byte(2);
  bool space = false;
  if (first == 0xE1) space = rest == 0x9A80;  // U+1680
  if (first == 0xE2)
    space = (rest >= 0x8080 && rest <= 0x808A) ||  // U+2000 to U+200A
            rest == 0x80A8 || rest == 0x80A9 ||    // U+2028, U+2029
            rest == 0x80AF || rest == 0x819F;      // U+202F, U+205F
  if (first == 0xE3) space = rest == 0x8080;       // U+3000
  return space ? 3 : 0;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  std::size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
  }
  text = out.append(text, done);
}

// ASCII punctuation and symbols but apostrophe, comma, hyphen and full stop.
bool always_alone(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

bool is_point(char c) { return c == '.' || c == ','; }

// One pass over neighbours (a, b): where `matches`, both are written with `before`, `between` and
// `after` around them and skipped, as a regular expression of two characters consumes them. Bytes
// do for characters: what is matched is ASCII or its absence.
template <typename Matches>
std::string separate_pairs(std::string_view text, Matches matches, std::string_view before,
                           std::string_view after) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool pair = i + 1 < text.size() && matches(text[i], text[i + 1]);
    if (pair) out += before;
    out += text[i];
    if (!pair) continue;
    out += ' ';
    out += text[++i];
    out += after;
  }
  return out;
}

// The language-dependent part of mteval-v13a for Western languages, four passes in its order.
std::string tokenize_western(std::string_view line) {
  std::string text;
  for (char c : line) {
    if (always_alone(c)) {
      text.append({' ', c, ' '});
    } else {
      text += c;
    }
  }
  text = separate_pairs(
      text, [](char a, char b) { return !is_digit(a) && is_point(b); }, "", " ");
  text = separate_pairs(
      text, [](char a, char b) { return is_point(a) && !is_digit(b); }, " ", "");
  return separate_pairs(
      text, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ");
}

std::string tokenize_13a(std::string_view line) {
  std::string text = " ";
  text += line;
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  if (text.find('&') != std::string::npos) {
    replace_all(text, "&quot;", "\"");
    replace_all(text, "&amp;", "&");
    replace_all(text, "&lt;", "<");
    replace_all(text, "&gt;", ">");
  }
  return tokenize_western(text + ' ');
}

std::string tokenize_none(std::string_view line) { return std::string(line); }

std::string tokenize_char(std::string_view line) {
  std::u32string out;
  for (char32_t c : to_code_points(line)) out.append({c, U' '});
  return to_utf8(out);
}

// Unicode's general categories N, P and S.
bool is_number(char32_t c) { return (U_MASK(u_charType(static_cast<UChar32>(c))) & U_GC_N_MASK); }
bool is_punctuation(char32_t c) {
  return (U_MASK(u_charType(static_cast<UChar32>(c))) & U_GC_P_MASK);
}
bool is_symbol(char32_t c) { return (U_MASK(u_charType(static_cast<UChar32>(c))) & U_GC_S_MASK); }

std::string tokenize_international(std::string_view line) {
  std::u32string text = to_code_points(line), out;
  auto pass = [&](auto matches, std::u32string_view before, std::u32string_view after) {
    out.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
      bool pair = i + 1 < text.size() && matches(text[i], text[i + 1]);
      if (pair) out += before;
      out += text[i];
      if (!pair) continue;
      out += U' ';
      out += text[++i];
      out += after;
    }
    text.swap(out);
  };
  pass([](char32_t a, char32_t b) { return !is_number(a) && is_punctuation(b); }, U"", U" ");
  pass([](char32_t a, char32_t b) { return is_punctuation(a) && !is_number(b); }, U" ", U"");
  out.clear();
  for (char32_t c : text) {
    if (is_symbol(c)) {
      out.append({U' ', c, U' '});
    } else {
      out += c;
    }
  }
  return to_utf8(out);
}

}  // namespace

const Catalogue<BleuTokenizer>& bleu_tokenizers() {
  static const Catalogue<BleuTokenizer> catalogue = [] {
    Catalogue<BleuTokenizer> r("tokenizer");
    r.add("13a", tokenize_13a, "as mteval-v13a.pl, the usual one for European languages");
    r.add("none", tokenize_none, "the text is split already");
    r.add("intl", tokenize_international, "as mteval-v14.pl --international-tokenization");
    r.add("char", tokenize_char, "every character is a token");
    return r;
  }();
  return catalogue;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    std::size_t size = 0;
    // White-space characters are 1 to 3 bytes long.
    for (std::size_t length = 1; length <= 3 && length <= text.size() && size == 0; ++length) {
      if (space_length(text, text.size() - length) == length) size = length;
    }
    if (size == 0) break;
    text.remove_suffix(size);
  }
  return text;
}

void split_unicode_words(std::string_view text, std::vector<std::string_view>& words) {
  words.clear();
  std::size_t start = 0, at = 0;
  while (at < text.size()) {
    std::size_t space = space_length(text, at);
    if (space == 0) {
      ++at;
      continue;
    }
    if (at > start) words.push_back(text.substr(start, at - start));
    start = at += space;
  }
  if (at > start) words.push_back(text.substr(start));
}

}  // namespace lockstep
