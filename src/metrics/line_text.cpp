#include "metrics/line_text.h"

#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>

namespace lockstep {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool always_alone(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

bool is_point(char c) { return c == '.' || c == ','; }

// Makes one pass over neighbouring bytes (a, b). Where `matches` is true it writes both with
// `before` before them, a blank between them and `after` after them, and continues behind them, as
// a regular expression of two characters would. Bytes may stand for characters: the patterns only
// ask whether a byte is a certain ASCII character.
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

}  // namespace

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

std::string lower_case(std::string_view text) {
  std::string out;
  bool ascii = std::all_of(text.begin(), text.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (!ascii) {
    icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())})
        .toLower(icu::Locale::getRoot())
        .toUTF8String(out);
    return out;
  }
  out = text;
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return out;
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

void unescape_entities(std::string& text) {
  if (text.find('&') == std::string::npos) return;
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

std::string separate_symbols(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (char c : text) {
    if (always_alone(c)) {
      out.append({' ', c, ' '});
    } else {
      out += c;
    }
  }
  return out;
}

std::string separate_points(std::string_view line) {
  std::string text = separate_pairs(
      line, [](char a, char b) { return !is_digit(a) && is_point(b); }, "", " ");
  text = separate_pairs(
      text, [](char a, char b) { return is_point(a) && !is_digit(b); }, " ", "");
  return separate_pairs(
      text, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ");
}

}  // namespace lockstep
