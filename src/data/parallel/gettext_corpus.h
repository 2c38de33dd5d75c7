// Extracts parallel text from the message catalogues (.mo) with which programs are translated.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "data/parallel/parallel_text.h"
#include "data/parallel/sentence_pairs.h"
#include "formats/mo_file.h"

namespace lockstep {

// Returns all LANGUAGE/LC_MESSAGES/*.mo below the folder, sorted by path, or every *.mo if there is
// none of these. Throws DataError when there is no catalogue at all.
std::vector<fs::path> find_catalogues(const fs::path& folder, const std::string& language);

// Returns the messages and their translations as pairs, cleaned (data/parallel/gettext_text.h). The
// singular is paired with the first plural form, the plural with the second; the context is
// dropped.
ParallelText read_catalogues(const std::vector<fs::path>& catalogues, const CleaningRules& rules);

struct CatalogueRules {
  CleaningRules rules;
  // Also removes the accelerators of KDE and Qt ("&Save") and messages that are replaced by the
  // names of the translators.
  bool all_marks = false;
};

// Adds the pairs of one catalogue to `out`.
void add_catalogue(const MoFile& catalogue, const CatalogueRules& rules, ParallelText& out);

}  // namespace lockstep
