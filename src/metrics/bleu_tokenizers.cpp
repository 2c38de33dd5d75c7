#include "metrics/bleu_tokenizers.h"

#include <unicode/uchar.h>

#include <cstddef>

#include "base/text.h"
#include "metrics/line_text.h"

namespace lockstep {

namespace {

std::string tokenize_13a(std::string_view line) {
  std::string text = " ";
  text += line;
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  unescape_entities(text);
  text += ' ';
  return separate_points(separate_symbols(text));
}

std::string tokenize_none(std::string_view line) { return std::string(line); }

std::string tokenize_char(std::string_view line) {
  std::u32string out;
  for (char32_t c : to_code_points(line)) out.append({c, U' '});
  return to_utf8(out);
}

// These functions test for Unicode's general categories N, P and S.
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

}  // namespace lockstep
