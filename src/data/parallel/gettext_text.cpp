#include "data/parallel/gettext_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "data/parallel/near_duplicates.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_ascii_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }
bool is_letter(char c) { return is_ascii_letter(c) || static_cast<unsigned char>(c) >= 0x80; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

char at(std::string_view text, std::size_t i) { return i < text.size() ? text[i] : '\0'; }

// Returns the run of letters, digits and '_' around position i.
std::string_view word_around(std::string_view text, std::size_t i) {
  std::size_t begin = i;
  std::size_t end = i + 1;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(begin, end - begin);
}

bool contains_word(std::string_view text, std::string_view word) {
  for (std::size_t i = text.find(word); i != std::string_view::npos; i = text.find(word, i + 1)) {
    if (word_around(text, i) == word) return true;
  }
  return false;
}

// Returns whether the '_' or '~' at i may mark the following letter as an accelerator.
bool may_be_mark(std::string_view text, std::size_t i, std::string_view other) {
  char mark = text[i];
  char before = i > 0 ? text[i - 1] : '\0';
  char after = at(text, i + 1);
  if (!(is_letter(after) || is_digit(after)) || before == mark) return false;
  if (is_digit(before) && is_digit(after)) return false;  // a range: 10~20
  if (mark == '~') return true;
  std::string_view word = word_around(text, i);
  auto begin = static_cast<std::size_t>(word.data() - text.data());
  char sign = begin > 0 ? text[begin - 1] : '\0';
  if (sign == '%' || sign == '$' || word.back() == '_') return false;  // %FILE_NAME, _emphasis_
  bool inside = begin < i;
  return !(inside && contains_word(other, word));  // identifiers are not translated
}

std::vector<std::size_t> marks_in(std::string_view text, std::string_view other) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] == '_' || text[i] == '~') && may_be_mark(text, i, other)) out.push_back(i);
  }
  return out;
}

// Returns false if several places could be the accelerator.
bool drop_accelerators(MessagePair& pair) {
  std::vector<std::size_t> source = marks_in(pair.source, pair.target);
  std::vector<std::size_t> target = marks_in(pair.target, pair.source);
  if (source.size() > 1 || target.size() > 1) return false;
  for (std::size_t i : source) pair.source.erase(i, 1);
  for (std::size_t i : target) pair.target.erase(i, 1);
  return true;
}

// A tag <name ...>, </name> or <name/>. (%< is not a tag: it opens a quotation of GCC.)
struct Tag {
  std::string_view name;
  std::size_t end = 0;  // position after '>'; 0: there is no tag here
  bool closes = false, closed = false;
};

Tag tag_at(std::string_view text, std::size_t i) {
  if (text[i] != '<' || (i > 0 && text[i - 1] == '%')) return {};
  Tag tag;
  tag.closes = at(text, i + 1) == '/';
  std::size_t begin = i + (tag.closes ? 2 : 1);
  std::size_t end = begin;
  while (is_ascii_letter(at(text, end)) || is_digit(at(text, end)) || at(text, end) == '_') ++end;
  std::size_t close = text.find_first_of("<>", end);
  if (!is_ascii_letter(at(text, begin)) || at(text, close) != '>') return {};
  tag.name = text.substr(begin, end - begin);
  tag.closed = text[close - 1] == '/';
  tag.end = close + 1;
  return tag;
}

bool has_closing_tag(std::string_view text, std::string_view name) {
  for (std::size_t i = text.find("</"); i != std::string_view::npos; i = text.find("</", i + 1)) {
    Tag tag = tag_at(text, i);
    if (tag.end > 0 && equals_ignoring_case(tag.name, name)) return true;
  }
  return false;
}

bool is_void_tag(std::string_view name) {
  return equals_ignoring_case(name, "br") || equals_ignoring_case(name, "hr") ||
         equals_ignoring_case(name, "p");
}

// Drops markup. Placeholders such as <file> stay, because nothing closes them.
std::string without_tags(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    Tag tag = tag_at(text, i);
    bool markup = tag.end > 0 && (tag.closes || tag.closed || is_void_tag(tag.name) ||
                                  has_closing_tag(text, tag.name));
    if (!markup) {
      out += text[i++];
      continue;
    }
    if (is_void_tag(tag.name)) out += ' ';
    i = tag.end;
  }
  return out;
}

int64_t count_tags(std::string_view text) {
  int64_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) count += tag_at(text, i).end > 0;
  return count;
}

std::string with_single_spaces(std::string_view text) {
  std::string out;
  for (std::string_view word : split_words(text)) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

// Returns the length of the variable that starts at i, or 0. Variables: %NAME, %1, $(NAME), $name$,
// $1.
std::size_t variable_length(std::string_view text, std::size_t i) {
  std::size_t end = i + 1;
  if (text[i] == '%' && is_upper(at(text, end))) {
    while (is_upper(at(text, end)) || is_digit(at(text, end)) || at(text, end) == '_') ++end;
    return end - i >= 3 ? end - i : 0;  // %E alone is a conversion of GCC
  }
  if (text[i] != '%' && text[i] != '$') return 0;
  if (is_digit(at(text, end))) {
    bool alone = !is_digit(at(text, end + 1)) && at(text, end + 1) != '$';  // not $100, not %1$s
    return alone ? 2 : 0;
  }
  if (text[i] == '%') return 0;
  bool bracket = at(text, end) == '(';
  end += bracket;
  std::size_t name = end;
  while (is_ascii_letter(at(text, end)) || is_digit(at(text, end)) || at(text, end) == '_') ++end;
  return end > name && at(text, end) == (bracket ? ')' : '$') ? end + 1 - i : 0;
}

std::vector<std::string> variables_in(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t length = variable_length(text, i);
    if (length == 0) continue;
    out.emplace_back(text.substr(i, length));
    i += length - 1;
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool is_untranslated(const MessagePair& pair) {
  std::string source = comparison_key(pair.source);
  std::string target = comparison_key(pair.target);
  // Some translations only prepend words to the English text: "Interner Fehler: ...".
  return source == target || (count_words(source) >= 3 && target.find(source) != std::string::npos);
}

// Returns where an '&' may mark an accelerator: before a letter or digit, and not in "&&", between
// digits or in a character reference (&lt;).
std::vector<std::size_t> ampersands_in(std::string_view text) {
  std::vector<std::size_t> out;
  for (std::size_t i = text.find('&'); i != std::string_view::npos; i = text.find('&', i + 1)) {
    const char after = at(text, i + 1);
    if (after == '&') {
      ++i;
      continue;
    }
    if (!is_letter(after) && !is_digit(after)) continue;
    std::size_t end = i + 1;
    while (is_ascii_letter(at(text, end)) || is_digit(at(text, end))) ++end;
    if (at(text, end) != ';') out.push_back(i);
  }
  return out;
}

}  // namespace

bool uses_accelerators(const MoFile& catalogue) {
  int64_t moved = 0;
  int64_t same = 0;
  for (const MoEntry& entry : catalogue.entries) {
    std::string_view source = entry.id;
    std::string_view target = entry.translations.front();
    std::size_t s = source.find_first_of("_~");
    std::size_t t = target.find_first_of("_~");
    if (s == std::string_view::npos || t == std::string_view::npos) continue;
    ++(word_around(source, s) == word_around(target, t) ? same : moved);
  }
  return moved > same;
}

bool uses_ampersands(const MoFile& catalogue) {
  int64_t moved = 0;
  int64_t same = 0;
  for (const MoEntry& entry : catalogue.entries) {
    const std::vector<std::size_t> source = ampersands_in(entry.id);
    const std::vector<std::size_t> target = ampersands_in(entry.translations.front());
    if (source.empty() || target.empty()) continue;
    const bool equal = word_around(entry.id, source.front() + 1) ==
                       word_around(entry.translations.front(), target.front() + 1);
    ++(equal ? same : moved);
  }
  return moved > same;
}

bool drop_ampersands(MessagePair& pair) {
  const std::vector<std::size_t> source = ampersands_in(pair.source);
  const std::vector<std::size_t> target = ampersands_in(pair.target);
  if (source.size() > 1 || target.size() > 1) return false;
  for (std::size_t i : source) pair.source.erase(i, 1);
  for (std::size_t i : target) pair.target.erase(i, 1);
  return true;
}

bool names_translators(const std::string& source) {
  const std::string text = lower_ascii(trim(source));
  return text == "translator-credits" || text == "translator_credits" || text == "your names" ||
         text == "your emails" || text == "name of translators" || text == "email of translators";
}

std::optional<std::string> clean_messages(MessagePair& pair, bool accelerators) {
  if (trim(pair.target).empty()) return "not translated";
  bool clear = !accelerators || drop_accelerators(pair);
  pair.source = with_single_spaces(without_tags(pair.source));
  pair.target = with_single_spaces(without_tags(pair.target));
  if (!clear) return "unclear accelerator";
  if (std::none_of(pair.source.begin(), pair.source.end(), is_letter)) return "no words";
  if (is_untranslated(pair)) return "not translated";
  if (count_tags(pair.source) != count_tags(pair.target)) return "markup on one side only";
  if (variables_in(pair.source) != variables_in(pair.target)) return "other variables";
  return std::nullopt;
}

}  // namespace lockstep
