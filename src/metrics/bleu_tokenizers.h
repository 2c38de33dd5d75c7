// How BLEU cuts a line into tokens: the tokenizers of sacreBLEU 2.6.0, by its names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/catalogue.h"

namespace lockstep {

// Puts white space between the tokens of `line`; split_unicode_words then finds them.
using BleuTokenizer = std::string (*)(std::string_view line);

// "13a" (mteval-v13a, the usual one), "none", "intl" (mteval-v14 --international) and "char".
const Catalogue<BleuTokenizer>& bleu_tokenizers();

// As Python's str.rstrip() and str.split(): white space is Unicode's, so a no-break space splits.
// The views point into `text`.
std::string_view strip_right(std::string_view text);
void split_unicode_words(std::string_view text, std::vector<std::string_view>& words);

}  // namespace lockstep
