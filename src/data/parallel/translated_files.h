// Finds the translated texts among the files of a Debian suite: message catalogues, manual pages,
// and pages of help and handbooks beside their originals.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/parallel/debian_index.h"

namespace lockstep {

enum class TextKind { kCatalogue, kManual, kHelp, kHandbook };
const char* name_of(TextKind kind);  // "message catalogues", "manual pages", ...

struct Languages {
  std::string source, target;  // "en", "de"
};

// Returns what a path (without leading '/') is in the target language; nothing for other files. A
// page also needs its original.
std::optional<TextKind> kind_of(std::string_view path, const Languages& languages);

// Returns the paths at which the original of a page may be, the likeliest first:
// usr/share/help/de/x.page -> usr/share/help/C/x.page, ...; index.de.html -> index.en.html, ...
std::vector<std::string> originals_of(std::string_view path, const Languages& languages);

// One page in both languages, by path.
struct PagePaths {
  std::string source, target;
  TextKind kind;
};

struct TranslatedFiles {
  // The packages to read, in the order of their names.
  std::vector<PackageRecord> packages;
  std::vector<PagePaths> pages;  // sorted by target
  int64_t catalogues = 0;
  int64_t too_large = 0, too_large_bytes = 0;  // packages that are left out
};

// Reads the lists of contents (Contents-all.gz, ...), each line a path and the packages that have
// it, and chooses from `packages` those up to `most_bytes` that have a catalogue, or a page or its
// original. A package all of whose texts others have too is left out, the larger one first.
TranslatedFiles find_translated_files(const std::vector<fs::path>& contents,
                                      const std::vector<PackageRecord>& packages,
                                      const Languages& languages, int64_t most_bytes);

}  // namespace lockstep
