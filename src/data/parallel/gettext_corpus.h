// Parallel text out of the message catalogues (.mo) that programs are translated with.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "data/parallel/parallel_text.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

// All LANGUAGE/LC_MESSAGES/*.mo below the folder, sorted by path; every *.mo when there is none
// such. Throws DataError when there is no catalogue at all.
std::vector<fs::path> find_catalogues(const fs::path& folder, const std::string& language);

// The messages and their translations as pairs, cleaned (data/parallel/gettext_text.h). The
// singular goes with the first plural form, the plural with the second; the context is dropped.
ParallelText read_catalogues(const std::vector<fs::path>& catalogues, const CleaningRules& rules);

}  // namespace lockstep
