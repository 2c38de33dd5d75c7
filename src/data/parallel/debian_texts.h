// Reads the translated texts of many Debian packages as pairs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/parallel/debian_suite.h"
#include "data/parallel/parallel_text.h"
#include "data/parallel/sentence_pairs.h"
#include "data/parallel/translated_files.h"

namespace lockstep {

// What one package gave of one kind.
struct TextSource {
  std::string package, version;
  TextKind kind;
  int64_t files = 0;  // catalogues, or pages that could be paired with their originals
  int64_t lines = 0;  // pairs read
};

struct DebianTexts {
  ParallelText text;
  std::vector<TextSource> sources;
  std::vector<int32_t> source_of;  // index into `sources` of each pair of text.pairs
};

// Reads the packages on all cores, without unpacking them to disk. The order of the pairs depends
// on the packages only: catalogues by package and path, then pages by path. Catalogues and pages
// that are damaged or not UTF-8 are counted in the log and left out. Throws DataError for a package
// that is damaged as a whole.
DebianTexts read_debian_texts(const DebianSuite& suite, const TranslatedFiles& files,
                              const Languages& languages, const CleaningRules& rules);

}  // namespace lockstep
