// Pairs the paragraphs of a page with those of its translation.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/pages/page_blocks.h"

namespace lockstep {

using TextPair = std::pair<std::string, std::string>;  // source, target

// Pairs blocks of equal ids where most blocks of both pages have one. Else both pages must have the
// same kinds of blocks in one order; where they do not, each section must, from heading to heading,
// and the pages must have as many sections (the translation may have one more at its end, in which
// its translators are named). What does not agree is left out: a pair that is missing harms less
// than a wrong one.
std::vector<TextPair> align_blocks(const std::vector<PageBlock>& source,
                                   const std::vector<PageBlock>& target);

}  // namespace lockstep
