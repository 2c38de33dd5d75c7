// How BLEU cuts a line into tokens: the tokenizers of sacreBLEU 2.6.0, by its names.
#pragma once

#include <string>
#include <string_view>

#include "base/catalogue.h"

namespace lockstep {

// Puts white space between the tokens of `line`; split_unicode_words then finds them.
using BleuTokenizer = std::string (*)(std::string_view line);

// "13a" (mteval-v13a, the usual one), "none", "intl" (mteval-v14 --international) and "char".
const Catalogue<BleuTokenizer>& bleu_tokenizers();

}  // namespace lockstep
