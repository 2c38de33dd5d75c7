// Text functions that behave like Python's str, and passes that several tokenizers of metrics
// share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Returns the bytes of the white-space character that starts at `at`, or 0 if there is none. White
// space is what Python's str.isspace() accepts: Unicode's White_Space and U+001C to U+001F.
std::size_t space_length(std::string_view text, std::size_t at);

// The next functions work like Python's str.rstrip(), str.split() and str.lower(): white space is
// that of Unicode, so a no-break space splits. The views point into `text`.
std::string_view strip_right(std::string_view text);
void split_unicode_words(std::string_view text, std::vector<std::string_view>& words);
std::string lower_case(std::string_view text);

void replace_all(std::string& text, std::string_view from, std::string_view to);
void unescape_entities(std::string& text);  // replaces &quot; &amp; &lt; &gt; in this order

// The language-dependent part of mteval-v13a for Western languages, in two steps. The first puts
// blanks around ASCII punctuation and symbols except apostrophe, comma, hyphen and full stop. The
// second puts blanks around commas and full stops without a digit before or after them, and around
// hyphens after a digit.
std::string separate_symbols(std::string_view text);
std::string separate_points(std::string_view text);

}  // namespace lockstep
