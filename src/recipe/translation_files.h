// Which files of a folder are aligned text, and which split each pair is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/parallel/parallel_text.h"

namespace lockstep {

// Of plain and .gz files whose lines translate each other.
struct TranslationFiles {
  std::string source_language, target_language;
  ParallelFiles train;
  std::optional<ParallelFiles> dev, test;
  std::vector<std::string> passed_over;  // pairs in the folder that are none of these
};

// "en" of "train.en.gz"; nothing where the ending is no name of a language.
std::optional<std::string> language_of(const fs::path& file);

// Of a folder with STEM.SOURCE and STEM.TARGET: train (or the only pair there is), dev (also val,
// validation, valid) and test by name; of several test sets the first by name. Languages are those
// of the endings, the source being `source` where it is given, else English where it is one of
// them, else the first by name. Throws DataError when there is no such pair, several could be train
// or there are more than two languages.
TranslationFiles find_translation_files(const fs::path& folder, const std::string& source);

// Of two files; languages by their endings, else "source" and "target".
TranslationFiles name_translation_files(const ParallelFiles& train);

}  // namespace lockstep
