// From raw text to a prepared corpus, start to end: what `lockstep prepare` does.
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
  bool was_there = false;  // the folder held it already; nothing was done
  double seconds = 0;
};

// English-German (or other) pairs out of the message catalogues of Debian packages. With
// `catalogues`, its .mo files are read; else with `packages_folder`, its .deb files are unpacked;
// else `packages` are fetched from `mirror` into OUT/cache, where they stay.
struct CatalogueSources {
  std::vector<std::string> packages{"libreoffice-l10n-de", "gcc-12-locales"};
  DebianMirror mirror;
  fs::path packages_folder, catalogues;  // empty: not given
};
PreparedCorpus prepare_catalogues(const CatalogueSources& sources, const CorpusOptions& options);

// Any aligned pair of files. Dev and test that are not given as files are split off by hash, with
// the sizes in options.split (0: none).
struct TextSources {
  ParallelFiles train;
  std::optional<ParallelFiles> dev, test;
};
PreparedCorpus prepare_text(const TextSources& sources, const CorpusOptions& options);

// What the options must satisfy whatever the source; throws ConfigError.
void check_options(const CorpusOptions& options);

// A table for people: what was read, dropped and kept, and the splits.
std::string describe_corpus(const PreparedCorpus& corpus);

}  // namespace lockstep
