// Determines the figures of aligned text and of a corpus that is already prepared.
#pragma once

#include "data/manifest/manifest.h"
#include "recipe/facts.h"
#include "recipe/translation_files.h"

namespace lockstep {

// The number of distinct words up to which they are counted: more make no difference to any rule.
inline constexpr int64_t kMostDistinct = 200'000;

// Reads all lines of train and counts those of dev and test. Throws DataError for a missing or
// damaged file, bytes that are not UTF-8, files of different lengths (with both counts) and files
// without text.
TranslationFacts read_translation_facts(const TranslationFiles& files);

// Returns the facts of a corpus that `lockstep prepare` prepared.
TranslationFacts translation_facts(const Manifest& manifest);

// Describes what was found, one line each.
std::vector<std::string> describe_translation(const TranslationFacts& facts);

}  // namespace lockstep
