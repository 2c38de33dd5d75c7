#include "data/parallel/prepare_corpus.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <map>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/parallel/debian_suite.h"
#include "data/parallel/debian_texts.h"
#include "data/parallel/gettext_corpus.h"
#include "data/parallel/translated_files.h"
#include "data/tokenize/translation_tokenizer.h"

namespace lockstep {

namespace {

void require_language(const std::string& name) {
  bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  if (!plain || name == "tokens") {
    throw ConfigError("language \"{}\": expected letters, such as en: files are named after it",
                      name);
  }
}

Manifest start_manifest(const std::string& command, const CorpusOptions& options) {
  Manifest out;
  out.lockstep_version = LOCKSTEP_VERSION;
  out.command = command;
  out.seed = options.split.seed;
  out.source_language = options.source_language;
  out.target_language = options.target_language;
  out.parameters = {{"min-words", std::to_string(options.cleaning.min_words)},
                    {"max-words", std::to_string(options.cleaning.max_words)},
                    {"ratio", fmt::format("{:g}", options.cleaning.max_ratio)},
                    {"vocab", std::to_string(options.subword.vocab_size)},
                    {"character-coverage", fmt::format("{}", options.subword.character_coverage)},
                    {"dev-size", std::to_string(options.split.dev)},
                    {"test-size", std::to_string(options.split.test)},
                    {"near-copy", fmt::format("{}", options.split.near_copy)}};
  if (!options.vocabulary.empty()) {
    out.parameters["vocab"] = options.vocabulary_name;
    out.parameters["vocab-identity"] = TranslationTokenizer::load(options.vocabulary).identity();
  }
  return out;
}

void add_drops(const DropCounts& more, DropCounts& all) {
  for (const auto& [reason, count] : more) all[reason] += count;
}

std::vector<int64_t> all_of(const SentencePairs& pairs) {
  std::vector<int64_t> out(static_cast<std::size_t>(pairs.size()));
  std::iota(out.begin(), out.end(), int64_t{0});
  return out;
}

// Splits the text by hash and appends the resulting splits to `splits`, train first.
void add_splits(const ParallelText& text, const SplitRules& rules, std::vector<SplitPairs>& splits,
                Manifest& manifest) {
  manifest.pairs_read = text.lines;
  add_drops(text.dropped, manifest.dropped);
  CorpusSplit split = split_corpus(text.pairs, rules);
  add_drops(split.dropped, manifest.dropped);
  splits.push_back({"train", &text.pairs, std::move(split.train)});
  if (!split.dev.empty()) splits.push_back({"dev", &text.pairs, std::move(split.dev)});
  if (!split.test.empty()) splits.push_back({"test", &text.pairs, std::move(split.test)});
}

// Appends the splits of text that has many sources, and what each of them gave.
void add_sources(const DebianTexts& texts, const std::vector<SplitPairs>& splits,
                 Manifest& manifest) {
  for (const PackageSource& source : texts.sources) {
    manifest.sources.push_back(
        {source.package, source.version, name_of(source.kind), source.files, source.lines, 0});
  }
  for (const SplitPairs& split : splits) {
    for (int64_t i : split.order) {
      const int32_t source = texts.source_of[static_cast<std::size_t>(i)];
      ++manifest.sources[static_cast<std::size_t>(source)].pairs_kept;
    }
  }
}

// Returns whether this may be the name of a package or a suite, because it becomes part of a path.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '-' && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '-' || c == '+' || c == '.';
         });
}

void require_suite(const DebianMirror& mirror) {
  if (is_plain_name(mirror.suite)) return;
  throw ConfigError("--suite \"{}\": expected a name such as bookworm", mirror.suite);
}

// Returns the .deb files to read. Named packages are fetched.
std::vector<fs::path> packages_of(const CatalogueSources& sources, const CorpusOptions& options) {
  if (!sources.packages_folder.empty()) return find_packages(sources.packages_folder);
  for (const std::string& name : sources.packages) {
    if (!is_plain_name(name)) {
      throw ConfigError("\"{}\" is no name of a Debian package", name);
    }
  }
  require_suite(sources.mirror);
  return fetch_packages(sources.packages, options.out / "cache", sources.mirror);
}

constexpr int64_t kAtOnce = 4;  // downloads: a mirror is shared with others
constexpr std::array kContents = {"main/Contents-all.gz", "main/Contents-amd64.gz"};

Languages languages_of(const CorpusOptions& options) {
  return {options.source_language, options.target_language};
}

// Returns the packages and pages that `more` takes.
TranslatedFiles find_more(DebianSuite& suite, const CatalogueSources& sources,
                          const CorpusOptions& options) {
  log_info("looking for translated texts in {}", suite.url());
  std::vector<fs::path> contents;
  for (const char* list : kContents) {
    // Suites before bookworm list the packages for all architectures in the second one.
    if (list != kContents.front() || suite.has_index(list)) contents.push_back(suite.index(list));
  }
  TranslatedFiles out = find_translated_files(contents, suite.all(), languages_of(options),
                                              sources.most_package_megabytes * 1'000'000);
  if (out.packages.empty()) {
    throw DataError("{}: no package up to {} MB has texts in \"{}\"", suite.url(),
                    sources.most_package_megabytes, options.target_language);
  }
  return out;
}

std::string describe_plan(const TranslatedFiles& files, const DebianSuite& suite) {
  int64_t bytes = 0;
  int64_t there = 0;
  for (const PackageRecord& package : files.packages) {
    bytes += package.check.bytes;
    if (suite.has(package)) there += package.check.bytes;
  }
  std::map<TextKind, int64_t> pages;
  for (const PagePaths& page : files.pages) ++pages[page.kind];
  std::string out = fmt::format("packages {:>6}  {} MB, {} MB of them in the cache\n",
                                with_commas(static_cast<int64_t>(files.packages.size())),
                                with_commas(bytes / 1'000'000), with_commas(there / 1'000'000));
  out +=
      fmt::format("  {:>13}  {}\n", with_commas(files.catalogues), name_of(TextKind::kCatalogue));
  for (const auto& [kind, count] : pages) {
    out += fmt::format("  {:>13}  {}\n", with_commas(count), name_of(kind));
  }
  if (files.too_large > 0) {
    out +=
        fmt::format("left out {:>6}  larger packages, {} MB (--max-package-mb)\n",
                    with_commas(files.too_large), with_commas(files.too_large_bytes / 1'000'000));
  }
  return out;
}

void check_more(const CatalogueSources& sources) {
  require_suite(sources.mirror);
  if (sources.most_package_megabytes < 1) {
    throw ConfigError("--max-package-mb {}: expected 1 or more", sources.most_package_megabytes);
  }
}

PreparedCorpus prepare_more(const CatalogueSources& sources, const CorpusOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check_more(sources);
  PreparedCorpus out;
  out.manifest = start_manifest("catalogs", options);
  out.manifest.parameters["more"] = std::to_string(sources.most_package_megabytes) + " MB";
  out.manifest.parameters["suite"] = sources.mirror.suite;
  if (fs::exists(options.out / kManifestName)) {  // recognized without the network
    Manifest there = read_manifest(options.out);
    Manifest wanted = out.manifest;
    wanted.inputs = there.inputs;
    if (there.same_origin(wanted)) return {std::move(there), true, seconds_since(start)};
  }
  DebianSuite suite(sources.mirror, options.out / "cache" / sources.mirror.suite);
  const TranslatedFiles files = find_more(suite, sources, options);
  log_info("{}", describe_plan(files, suite));
  suite.fetch(files.packages, kAtOnce);
  for (const PackageRecord& package : files.packages) {
    out.manifest.inputs.push_back(
        {suite.file_of(package).filename().string(), package.check.bytes, package.check.sha256});
  }
  if (std::optional<Manifest> there = open_corpus_folder(options.out, out.manifest)) {
    return {std::move(*there), true, seconds_since(start)};
  }
  const DebianTexts texts =
      read_debian_texts(suite, files, languages_of(options), options.cleaning);
  std::vector<SplitPairs> splits;
  add_splits(texts.text, options.split, splits, out.manifest);
  add_sources(texts, splits, out.manifest);
  write_corpus(options, splits, out.manifest);
  out.seconds = seconds_since(start);
  return out;
}

}  // namespace

void check_options(const CorpusOptions& options) {
  require_language(options.source_language);
  require_language(options.target_language);
  if (options.source_language == options.target_language) {
    throw ConfigError("source and target language are both \"{}\"; files are named after them",
                      options.source_language);
  }
  const CleaningRules& rules = options.cleaning;
  if (rules.min_words < 1 || rules.max_words < rules.min_words || !(rules.max_ratio >= 1)) {
    throw ConfigError(
        "min-words {}, max-words {}, ratio {}: expected 1 <= min <= max and a ratio of 1 or more",
        rules.min_words, rules.max_words, rules.max_ratio);
  }
  if (options.split.dev < 0 || options.split.test < 0) {
    throw ConfigError("dev and test sizes {} and {}: expected 0 or more", options.split.dev,
                      options.split.test);
  }
  if (!(options.split.near_copy > 0 && options.split.near_copy <= 1)) {
    throw ConfigError("near-copy {}: expected above 0 and at most 1", options.split.near_copy);
  }
  if (options.subword.vocab_size < 5) {
    throw ConfigError("vocab {}: expected more than the 4 special pieces",
                      options.subword.vocab_size);
  }
  if (!(options.subword.character_coverage > 0.9 && options.subword.character_coverage <= 1)) {
    throw ConfigError("character-coverage {}: expected above 0.9 and at most 1",
                      options.subword.character_coverage);
  }
}

std::string plan_more(const CatalogueSources& sources, const CorpusOptions& options) {
  check_options(options);
  check_more(sources);
  DebianSuite suite(sources.mirror, options.out / "cache" / sources.mirror.suite);
  return describe_plan(find_more(suite, sources, options), suite);
}

PreparedCorpus prepare_catalogues(const CatalogueSources& sources, const CorpusOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check_options(options);
  if (sources.more) return prepare_more(sources, options);
  PreparedCorpus out;
  out.manifest = start_manifest("catalogs", options);
  TemporaryFolder unpacked;
  std::vector<fs::path> catalogues;
  if (!sources.catalogues.empty()) {
    catalogues = find_catalogues(sources.catalogues, options.target_language);
    for (const fs::path& path : catalogues) out.manifest.inputs.push_back(record_file(path));
  } else {
    std::vector<std::string> names = sources.packages;
    // The packages of a finished corpus that are given by name need not be fetched to recognize it.
    bool by_name = sources.packages_folder.empty();
    if (by_name) {
      out.manifest.parameters["packages"] = join(names, ",");
      const std::string& suite = sources.mirror.suite;
      // Only an unusual suite is recorded: corpora made before there was a choice stay valid.
      if (suite != DebianMirror{}.suite) out.manifest.parameters["suite"] = suite;
    }
    if (by_name && fs::exists(options.out / kManifestName)) {
      Manifest there = read_manifest(options.out);
      Manifest wanted = out.manifest;
      wanted.inputs = there.inputs;
      if (there.same_origin(wanted)) return {std::move(there), true, seconds_since(start)};
    }
    for (const fs::path& package : packages_of(sources, options)) {
      out.manifest.inputs.push_back(record_file(package));
      unpack_package(package, unpacked.path());
    }
    catalogues = find_catalogues(unpacked.path(), options.target_language);
  }
  if (std::optional<Manifest> there = open_corpus_folder(options.out, out.manifest)) {
    return {std::move(*there), true, seconds_since(start)};
  }
  log_info("reading {} catalogues", catalogues.size());
  ParallelText text = read_catalogues(catalogues, options.cleaning);
  std::vector<SplitPairs> splits;
  add_splits(text, options.split, splits, out.manifest);
  write_corpus(options, splits, out.manifest);
  out.seconds = seconds_since(start);
  return out;
}

PreparedCorpus prepare_text(const TextSources& sources, const CorpusOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check_options(options);
  PreparedCorpus out;
  out.manifest = start_manifest("text", options);
  auto record = [&](const ParallelFiles& files, const std::string& role) {
    if (files.taken) {
      out.manifest.inputs.push_back(record_file(files.taken->file));
      out.manifest.parameters[role] =
          files.taken->file.filename().string() + ": " + files.taken->parts;
      return;
    }
    out.manifest.inputs.push_back(record_file(files.source));
    out.manifest.inputs.push_back(record_file(files.target));
    out.manifest.parameters[role] =
        files.source.filename().string() + " " + files.target.filename().string();
  };
  record(sources.train, "train");
  if (sources.dev) record(*sources.dev, "dev");
  if (sources.test) record(*sources.test, "test");
  if (std::optional<Manifest> there = open_corpus_folder(options.out, out.manifest)) {
    return {std::move(*there), true, seconds_since(start)};
  }
  ParallelText train = read_parallel_text(sources.train, options.cleaning);
  ParallelText dev = sources.dev ? read_held_out_text(*sources.dev) : ParallelText{};
  ParallelText test = sources.test ? read_held_out_text(*sources.test) : ParallelText{};
  std::vector<SplitPairs> splits;
  if (options.split.dev > 0 || options.split.test > 0) {
    add_splits(train, options.split, splits, out.manifest);
  } else {
    std::vector<int64_t> order = all_of(train.pairs);
    shuffle_pairs(order, options.split.seed);
    splits.push_back({"train", &train.pairs, std::move(order)});
    out.manifest.pairs_read = train.lines;
    add_drops(train.dropped, out.manifest.dropped);
  }
  auto add_given = [&](const ParallelText& text, const char* name) {
    out.manifest.pairs_read += text.lines;
    add_drops(text.dropped, out.manifest.dropped);
    splits.push_back(
        {name, &text.pairs, all_of(text.pairs), count_overlap(train.pairs, text.pairs)});
  };
  if (sources.dev) add_given(dev, "dev");
  if (sources.test) add_given(test, "test");
  write_corpus(options, splits, out.manifest);
  out.seconds = seconds_since(start);
  return out;
}

}  // namespace lockstep
