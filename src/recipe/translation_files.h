// Determines which files of a folder are aligned text and which split each pair of files is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/labelled/text_manifest.h"
#include "data/parallel/parallel_text.h"

namespace lockstep {

// The files of a corpus, plain or .gz, whose lines translate each other.
struct TranslationFiles {
  std::string source_language, target_language;
  ParallelFiles train;
  std::optional<ParallelFiles> dev, test;
  std::vector<std::string> passed_over;  // other pairs of files in the folder
  TextColumns columns;                   // of tables, as the user named them
};

// Searches a folder with files STEM.SOURCE and STEM.TARGET. The split follows from the name: train
// (or the only pair there is), dev (also val, validation, valid) and test; of several test sets the
// first by name is taken. The endings give the languages. The source is `source` if that is given,
// else English if it is one of them, else the first by name. Throws DataError when there is no such
// pair, when several pairs could be train and when there are more than two languages.
TranslationFiles find_translation_files(const fs::path& folder, const std::string& source);

// Names two files. Their endings give the languages, else these are "source" and "target".
TranslationFiles name_translation_files(const ParallelFiles& train);

}  // namespace lockstep
