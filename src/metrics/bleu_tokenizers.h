// The tokenizers of BLEU, which split a line into tokens like those of sacreBLEU 2.6.0 and have the
// same names.
#pragma once

#include <string>
#include <string_view>

#include "base/catalogue.h"

namespace lockstep {

// Inserts white space between the tokens of `line`, so that split_unicode_words can find them.
using BleuTokenizer = std::string (*)(std::string_view line);

// Contains "13a" (mteval-v13a, the usual one), "none", "intl" (mteval-v14 --international) and
// "char".
const Catalogue<BleuTokenizer>& bleu_tokenizers();

}  // namespace lockstep
