#include "commands/prepare.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "data/prepare_corpus.h"

namespace lockstep {

namespace {

struct Options {
  CorpusOptions corpus;
  CatalogueSources catalogues;
  std::string source, target;
  std::vector<std::string> dev_files, test_files;
  std::optional<int64_t> dev_size, test_size;
  uint64_t seed = 1;
};

void add_shared_options(CLI::App& app, Options& o) {
  app.add_option("--out", o.corpus.out, "folder to write into")->required();
  app.add_option("--source-language", o.corpus.source_language, "ending of its text files")
      ->capture_default_str();
  app.add_option("--target-language", o.corpus.target_language, "ending of its text files")
      ->capture_default_str();
  app.add_option("--vocab", o.corpus.subword.vocab_size, "subwords, one set for both languages")
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
  app.add_option("--near-copy", o.corpus.split.near_copy,
                 "similarity from which a sentence counts as a copy of a held-out one")
      ->capture_default_str();
}

CLI::App* add_catalogs(CLI::App& app, Options& o) {
  CLI::App* command = app.add_subcommand(
      "catalogs",
      "pairs out of the message catalogues of Debian packages (fetched, not installed)");
  add_shared_options(*command, o);
  command->add_option("--dev", o.dev_size, "pairs held out for validation (1000)");
  command->add_option("--test", o.test_size, "pairs held out for the test (1000)");
  command->add_option("--packages", o.catalogues.packages, "Debian packages to take them from")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--packages-dir", o.catalogues.packages_folder, "folder of .deb files");
  command->add_option("--catalogs", o.catalogues.catalogues, "folder with .mo files")
      ->excludes("--packages-dir");
  return command;
}

CLI::App* add_text(CLI::App& app, Options& o) {
  CLI::App* command = app.add_subcommand("text", "any two files whose lines translate each other");
  command->add_option("source", o.source, "text, plain or .gz")->required();
  command->add_option("target", o.target, "its translation, line by line")->required();
  add_shared_options(*command, o);
  CLI::Option* dev =
      command->add_option("--dev", o.dev_files, "source and target to validate on")->expected(2);
  CLI::Option* test =
      command->add_option("--test", o.test_files, "source and target to test on")->expected(2);
  command->add_option("--dev-size", o.dev_size, "pairs to split off (1000 without dev and test)")
      ->excludes(dev);
  command->add_option("--test-size", o.test_size, "pairs to split off (1000 without dev and test)")
      ->excludes(test);
  return command;
}

std::optional<ParallelFiles> files_of(const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  return ParallelFiles{names[0], names[1]};
}

void finish_options(Options& o) {
  bool given = !o.dev_files.empty() || !o.test_files.empty();
  o.corpus.split.dev = o.dev_size.value_or(given ? 0 : 1000);
  o.corpus.split.test = o.test_size.value_or(given ? 0 : 1000);
  o.corpus.split.seed = o.seed;
  o.corpus.subword.seed = o.seed;
}

void print(const PreparedCorpus& corpus, const fs::path& out) {
  if (corpus.was_there) {
    fmt::print("{} already holds this corpus; nothing to do\n\n", out.string());
  }
  fmt::print("{}", describe_corpus(corpus));
  if (!corpus.was_there) fmt::print("\n{} ready in {:.1f} s\n", out.string(), corpus.seconds);
}

}  // namespace

int prepare(const Arguments& arguments) {
  Options o;
  CLI::App app("raw text to a corpus to train on", "lockstep prepare");
  app.require_subcommand(1);
  CLI::App* catalogs = add_catalogs(app, o);
  add_text(app, o);
  if (!parse_arguments(app, arguments)) return kExitOk;
  finish_options(o);
  PreparedCorpus corpus =
      catalogs->parsed()
          ? prepare_catalogues(o.catalogues, o.corpus)
          : prepare_text({{o.source, o.target}, files_of(o.dev_files), files_of(o.test_files)},
                         o.corpus);
  print(corpus, o.corpus.out);
  return kExitOk;
}

}  // namespace lockstep
