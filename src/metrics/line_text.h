// Lines of text as Python's str treats them, and the passes that tokenizers of metrics share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Bytes of the white-space character that starts at `at`, 0 when another one does. The set is that
// of Python's str.isspace(), which has U+001C to U+001F beyond Unicode's White_Space.
std::size_t space_length(std::string_view text, std::size_t at);

// As Python's str.rstrip(), str.split() and str.lower(): white space is Unicode's, so a no-break
// space splits. The views point into `text`.
std::string_view strip_right(std::string_view text);
void split_unicode_words(std::string_view text, std::vector<std::string_view>& words);
std::string lower_case(std::string_view text);

void replace_all(std::string& text, std::string_view from, std::string_view to);
void unescape_entities(std::string& text);  // &quot; &amp; &lt; &gt; in this order

// The language-dependent part of mteval-v13a for Western languages in its order: blanks around
// ASCII punctuation and symbols but apostrophe, comma, hyphen and full stop; then around commas and
// full stops without a digit before or behind, and hyphens behind a digit.
std::string separate_symbols(std::string_view text);
std::string separate_points(std::string_view text);

}  // namespace lockstep
