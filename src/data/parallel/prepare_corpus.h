// Implements `lockstep prepare`: turns raw text into a prepared corpus.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/manifest/manifest.h"
#include "data/parallel/corpus_writer.h"
#include "data/parallel/debian_packages.h"
#include "data/parallel/parallel_text.h"

namespace lockstep {

struct PreparedCorpus {
  Manifest manifest;
  bool was_there = false;  // the folder held the corpus already; nothing was done
  double seconds = 0;
};

// Prepares pairs in English and German (or other languages) from the message catalogues of Debian
// packages. If `catalogues` is set, its .mo files are read; else if `packages_folder` is set, its
// .deb files are unpacked; else `packages` are fetched from `mirror` into OUT/cache, where they
// stay.
struct CatalogueSources {
  std::vector<std::string> packages{"libreoffice-l10n-de", "gcc-12-locales"};
  DebianMirror mirror;
  fs::path packages_folder, catalogues;  // empty: not given
  bool more = false;  // instead of `packages` all packages of the suite with translated texts ...
  int64_t most_package_megabytes = 10;  // ... that are not larger
};
PreparedCorpus prepare_catalogues(const CatalogueSources& sources, const CorpusOptions& options);

// Returns a table of what `more` would fetch: packages, files, megabytes and how many of them the
// cache holds. Fetches the indices only.
std::string plan_more(const CatalogueSources& sources, const CorpusOptions& options);

// Prepares any aligned pair of files. If dev or test is not given as files, it is split off by hash
// with the size in options.split (0: none).
struct TextSources {
  ParallelFiles train;
  std::optional<ParallelFiles> dev, test;
};
PreparedCorpus prepare_text(const TextSources& sources, const CorpusOptions& options);

// Checks what the options must satisfy for every source. Throws ConfigError.
void check_options(const CorpusOptions& options);

}  // namespace lockstep
