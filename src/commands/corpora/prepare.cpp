#include "commands/corpora/prepare.h"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "commands/corpora/hub_input.h"
#include "commands/corpora/prepare_labelled.h"
#include "data/fetch/hub.h"
#include "data/images/prepare_images.h"
#include "data/labelled/pair_input.h"
#include "data/parallel/describe_corpus.h"
#include "data/parallel/prepare_corpus.h"
#include "data/parallel/wmt_corpus.h"
#include "data/tokenize/published_vocabulary.h"

namespace lockstep {

namespace {

struct Options {
  CorpusOptions corpus;
  CatalogueSources catalogues;
  std::string source, target;
  std::string vocabulary = "8000";
  std::vector<std::string> dev_files, test_files;
  TextColumns columns;  // of tables of pairs
  std::optional<int64_t> dev_size, test_size;
  uint64_t seed = 1;

  std::string recipe = "today", test_set = "filtered";
  bool keep_repeated = false, no_language_check = false;
  int64_t stall_seconds = 30;
  FetchOptions fetch;

  PrepareImagesOptions images;
  HubInput hub;
  std::string broken = "skip";
  bool dry_run = false;
};

// Adds options of all ways to prepare.
void add_corpus_options(CommandLine& app, Options& o) {
  app.add_option("--out", o.corpus.out, "folder to write into")->required();
  app.add_option("--vocab", o.vocabulary,
                 "subwords to learn, one set for both languages, or the vocabulary of a model to "
                 "begin with: its folder or hf:OWNER/NAME")
      ->capture_default_str();
  app.add_option("--character-coverage", o.corpus.subword.character_coverage,
                 "share of characters with a subword of their own")
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of the split and the order")->capture_default_str();
  app.add_option("--min-words", o.corpus.cleaning.min_words, "shorter pairs are dropped")
      ->capture_default_str();
  app.add_option("--max-words", o.corpus.cleaning.max_words, "longer pairs are dropped")
      ->capture_default_str();
  app.add_option("--ratio", o.corpus.cleaning.max_ratio,
                 "pairs with one side so many times longer are dropped")
      ->capture_default_str();
}

// Adds options of those that split off dev and test sets.
void add_split_options(CommandLine& app, Options& o) {
  app.add_option("--source-language", o.corpus.source_language, "ending of its text files")
      ->capture_default_str();
  app.add_option("--target-language", o.corpus.target_language, "ending of its text files")
      ->capture_default_str();
  app.add_option("--near-copy", o.corpus.split.near_copy,
                 "similarity from which a sentence counts as a copy of a held-out one")
      ->capture_default_str();
}

CommandLine* add_catalogs(CommandLine& app, Options& o) {
  CommandLine* command = app.add_subcommand(
      "catalogs",
      "pairs out of the message catalogues of Debian packages (fetched, not installed)");
  add_corpus_options(*command, o);
  add_split_options(*command, o);
  command->add_option("--dev", o.dev_size, "pairs held out for validation (1000)");
  command->add_option("--test", o.test_size, "pairs held out for the test (1000)");
  command->add_option("--packages", o.catalogues.packages, "Debian packages to take them from")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--mirror", o.catalogues.mirror.url, "of Debian, where the packages are")
      ->capture_default_str();
  command->add_option("--suite", o.catalogues.mirror.suite, "release of Debian, by its code name")
      ->capture_default_str();
  const CommandOption packages =
      command->add_option("--packages-dir", o.catalogues.packages_folder, "folder of .deb files");
  const CommandOption folder =
      command->add_option("--catalogs", o.catalogues.catalogues, "folder with .mo files");
  folder->excludes(packages);
  command
      ->add_flag("--more", o.catalogues.more,
                 "all packages with translated texts: catalogues, help, manuals, handbooks")
      ->excludes(packages)
      ->excludes(folder);
  command
      ->add_option("--max-package-mb", o.catalogues.most_package_megabytes,
                   "of --more: larger packages are left out")
      ->capture_default_str();
  command->add_flag("--dry-run", o.dry_run, "of --more: say what would be fetched");
  return command;
}

CommandLine* add_text(CommandLine& app, Options& o) {
  CommandLine* command =
      app.add_subcommand("text", "two files whose lines translate each other, or a table of pairs");
  command
      ->add_option("source", o.source,
                   "text, plain or .gz; or alone: csv, tsv, JSON lines or Parquet with both "
                   "languages, an archive of one or of two texts, or "
                   "hf:datasets/OWNER/NAME[@REVISION] of the Hugging Face hub")
      ->required();
  command->add_option("target", o.target,
                      "its translation, line by line (labels instead: lockstep prepare labelled)");
  command->add_option("--source-column", o.columns.text,
                      "of a table: the column of the source, its name or number from 1");
  command->add_option("--target-column", o.columns.pair, "of a table: the column of the target");
  o.hub.add_options(*command);
  add_corpus_options(*command, o);
  add_split_options(*command, o);
  CommandOption dev =
      command->add_option("--dev", o.dev_files, "source and target to validate on, or a table")
          ->expected(1, 2);
  CommandOption test =
      command->add_option("--test", o.test_files, "source and target to test on, or a table")
          ->expected(1, 2);
  command->add_option("--dev-size", o.dev_size, "pairs to split off (1000 without dev and test)")
      ->excludes(dev);
  command->add_option("--test-size", o.test_size, "pairs to split off (1000 without dev and test)")
      ->excludes(test);
  return command;
}

CommandLine* add_wmt16(CommandLine& app, Options& o) {
  CommandLine* command = app.add_subcommand("wmt16-en-de",
                                            "WMT16 English-German: Europarl v7, Common Crawl, News "
                                            "Commentary v11; newstest2013 and 2014");
  add_corpus_options(*command, o);
  command->get_option("--vocab")->default_str("32768");
  command->add_option("--mirror", o.fetch.mirror, "folder or URL that has the archives");
  command->add_option("--checksums", o.fetch.checksums,
                      "file of sha256sum that the archives must satisfy, or none");
  command->add_option("--attempts", o.fetch.download.attempts, "of a download without progress")
      ->positive()
      ->capture_default_str();
  command->add_option("--stall-seconds", o.stall_seconds, "without a byte, then a new attempt")
      ->positive()
      ->capture_default_str();
  command
      ->add_option("--recipe", o.recipe,
                   "today, or openseq2seq: repeated pairs and other languages stay, bars go")
      ->one_of({"today", "openseq2seq"})
      ->capture_default_str();
  command->add_flag("--keep-repeated", o.keep_repeated, "equal pairs stay");
  command->add_flag("--no-language-check", o.no_language_check,
                    "sentences of other languages and untranslated ones stay");
  command->add_option("--test", o.test_set, "newstest2014: filtered (2,737 lines) or full (3,003)")
      ->one_of({"filtered", "full"})
      ->capture_default_str();
  return command;
}

CommandLine* add_images(CommandLine& app, Options& o) {
  CommandLine* command = app.add_subcommand(
      "images",
      "a tree train/CLASS/FILE.jpg, archives of one, or sets of pixels, into shards to train on");
  PrepareImagesOptions& images = o.images;
  command
      ->add_option("input", images.input,
                   "folder with train and val, an archive, the files of MNIST or CIFAR, or "
                   "hf:datasets/OWNER/NAME[@REVISION] of "
                   "the Hugging Face hub")
      ->required();
  o.hub.add_options(*command);
  command->add_option("--image", images.columns.image,
                      "Parquet: column of the images; --labels: of the files");
  command->add_option("--label", images.columns.label,
                      "Parquet, --labels, metadata.csv and .jsonl: column of the labels");
  command->add_option("--out", images.out, "folder to write into")->required();
  command
      ->add_option("--resize", images.resize,
                   "larger images are encoded anew with this shorter side; 0: none")
      ->capture_default_str();
  command->add_option("--quality", images.quality, "of the JPEGs that are encoded anew")
      ->capture_default_str();
  command->add_option("--labels,--val-labels", images.flat_labels,
                      "csv, list of FILE CLASS, or of classes, for images without class folders");
  command->add_flag("--classes-by-name", images.classes_by_name,
                    "images without class folders are named after them: cat.0.jpg");
  command
      ->add_option("--hold-out", images.hold_out,
                   "share of each class of train that becomes val, where there is none")
      ->capture_default_str();
  command->add_option("--shard-bytes", images.shard_bytes, "of one file, about")
      ->capture_default_str();
  command->add_option("--threads", images.threads, "that decode; 0: one a core")
      ->capture_default_str();
  command->add_option("--broken", o.broken, "images that cannot be decoded: skip (and list), fail")
      ->one_of({"skip", "fail"})
      ->capture_default_str();
  return command;
}

// Returns the two files that `names` are, or takes them out of the one that has both languages and
// says what was taken. Nothing for no names.
std::optional<ParallelFiles> files_of(const std::vector<std::string>& names, const Options& o,
                                      const TemporaryFolder& folder, const std::string& split) {
  if (names.empty()) return std::nullopt;
  if (names.size() == 2) return ParallelFiles{names[0], names[1]};
  if (!may_hold_pairs(names[0])) {
    ConfigError error("prepare text: {}: expected target too, its translation line by line",
                      names[0]);
    error.set_advice("alone go .csv, .tsv, .jsonl, .json, .parquet, .txt with tabs, and archives");
    throw error;
  }
  const PairOptions options{{o.corpus.source_language, o.corpus.target_language}, o.columns};
  const ParallelFiles files = take_pairs(names[0], options, folder.path(), split).files;
  fmt::print("{}: {}\n", names[0], files.taken->parts);
  return files;
}

// Takes the pairs of a data set of the hub: train, validation and test, by their languages'
// columns.
PreparedCorpus prepare_pairs(const HubData& data, Options& o) {
  const TemporaryFolder folder;
  const std::string source = o.corpus.source_language, target = o.corpus.target_language;
  TextSources sources;
  for (const HubSplit& split : data.splits) {
    const ParallelFiles files{folder.path() / (split.name + "." + source),
                              folder.path() / (split.name + "." + target)};
    std::vector<fs::path> tables;
    for (const std::string& file : split.files) tables.push_back(data.folder / file);
    if (split.name == "train") sources.train = files;
    if (split.name == "validation") sources.dev = files;
    if (split.name == "test") sources.test = files;
    write_table_pairs(tables, {{source, target}, o.columns, /*header=*/true}, files);
  }
  if (sources.train.source.empty()) {
    throw DataError("{}: no split train; --splits train=NAME", data.name());
  }
  const bool given = sources.dev || sources.test;
  o.corpus.split.dev = o.dev_size.value_or(given ? 0 : 1000);
  o.corpus.split.test = o.test_size.value_or(given ? 0 : 1000);
  return prepare_text(sources, o.corpus);
}

PreparedCorpus prepare_text_input(Options& o) {
  const auto data = o.hub.fetch(o.source, HubContent::kTables);
  if (data && !o.target.empty()) {
    throw ConfigError("prepare text: {}: a data set has both languages; expected no target",
                      o.source);
  }
  if (data) return prepare_pairs(*data, o);
  const TemporaryFolder folder;
  std::vector<std::string> train{o.source};
  if (!o.target.empty()) train.push_back(o.target);
  return prepare_text(
      {*files_of(train, o, folder, "train"), files_of(o.dev_files, o, folder, "dev"),
       files_of(o.test_files, o, folder, "test")},
      o.corpus);
}

int prepare_them(PrepareImagesOptions options, const HubInput& hub) {
  if (const auto data = hub.fetch(options.input.string(), HubContent::kImages)) {
    options.input_name = data->name();
    options.columns.class_names = data->class_names;
    for (const HubSplit& split : data->splits) {
      const std::string name = split.name == "validation" ? "val" : split.name;
      for (const std::string& file : split.files) {
        options.inputs.push_back({name, data->folder / file});
      }
    }
  }
  ImagesManifest manifest = prepare_images(options);
  fmt::print("{}\n{} ready\n", describe_images(manifest), options.out.string());
  return kExitOk;
}

WmtOptions wmt_options(const Options& o) {
  bool faithful = o.recipe == "openseq2seq";
  WmtOptions out{.corpus = o.corpus,
                 .drop_repeated = !faithful && !o.keep_repeated,
                 .check_language = !faithful && !o.no_language_check,
                 .drop_bars = faithful,
                 .full_test = o.test_set == "full",
                 .fetch = o.fetch};
  out.fetch.download.stall_timeout = std::chrono::seconds(o.stall_seconds);
  return out;
}

// A number is how many subwords to learn; anything else names a vocabulary.
void take_vocabulary(Options& o) {
  const std::string& given = o.vocabulary;
  int32_t count = 0;
  const auto [end, problem] = std::from_chars(given.data(), given.data() + given.size(), count);
  if (problem == std::errc() && end == given.data() + given.size()) {
    o.corpus.subword.vocab_size = count;
    return;
  }
  if (!hub_reference(given) && !fs::is_directory(given)) {
    throw ConfigError(
        "--vocab {}: expected a number of subwords, a folder with the vocabulary of a model, or "
        "hf:OWNER/NAME",
        given);
  }
  std::vector<std::string> names = published_vocabulary_files();
  names.emplace_back("config.json");
  o.corpus.vocabulary = find_model_files(given, names);
  o.corpus.vocabulary_name =
      hub_reference(given) ? given : fs::absolute(given).lexically_normal().filename().string();
}

void finish_options(Options& o) {
  take_vocabulary(o);
  bool given = !o.dev_files.empty() || !o.test_files.empty();
  o.corpus.split.dev = o.dev_size.value_or(given ? 0 : 1000);
  o.corpus.split.test = o.test_size.value_or(given ? 0 : 1000);
  o.corpus.split.seed = o.seed;
}

void print(const PreparedCorpus& corpus, const fs::path& out) {
  if (corpus.was_there) {
    fmt::print("{} already holds this corpus; nothing to do\n\n", out.string());
  }
  fmt::print("{}", describe_corpus(corpus.manifest));
  if (!corpus.was_there) fmt::print("\n{} ready in {:.1f} s\n", out.string(), corpus.seconds);
}

}  // namespace

int prepare(const Arguments& arguments) {
  Options o;
  CommandLine app("raw text or images to data to train on", "lockstep prepare");
  app.require_subcommand();
  CommandLine* catalogs = add_catalogs(app, o);
  add_text(app, o);
  CommandLine* wmt16 = add_wmt16(app, o);
  CommandLine* images = add_images(app, o);
  PrepareLabelledCommand labelled(app);
  if (!app.parse(arguments)) return kExitOk;
  if (labelled.parsed()) return labelled.run();
  if (images->parsed()) {
    o.images.fail_on_broken = o.broken == "fail";
    return prepare_them(o.images, o.hub);
  }
  if (wmt16->parsed() && !wmt16->has("--vocab")) o.vocabulary = "32768";
  finish_options(o);
  if (wmt16->parsed() && !o.corpus.vocabulary.empty()) {
    ConfigError error("prepare wmt16-en-de: --vocab {}: expected a number of subwords",
                      o.vocabulary);
    error.set_advice("prepare text OUT/train.en OUT/train.de --out FOLDER --vocab " + o.vocabulary);
    throw error;
  }
  if (catalogs->parsed() && o.dry_run) {
    if (!o.catalogues.more) throw ConfigError("--dry-run: only with --more");
    fmt::print("{}", plan_more(o.catalogues, o.corpus));
    return kExitOk;
  }
  auto prepare_it = [&] {
    if (catalogs->parsed()) return prepare_catalogues(o.catalogues, o.corpus);
    if (wmt16->parsed()) return prepare_wmt16(wmt_options(o));
    return prepare_text_input(o);
  };
  print(prepare_it(), o.corpus.out);
  return kExitOk;
}

}  // namespace lockstep
