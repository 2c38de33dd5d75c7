#include "commands/runs/new.h"

#include "recipe/new_run.h"

namespace lockstep {

namespace {

void add_common(CommandLine& app, NewOptions& o) {
  app.add_option("--out", o.out, "the configuration to write (default: the data's name.toml)");
  app.add_option("--minutes", o.budget.minutes, "that the run may take on this machine")
      ->positive()
      ->capture_default_str();
}

void add_translation(CommandLine& app, NewOptions& o) {
  CommandLine* part =
      app.add_subcommand("translation", "sentences to sentences, with a Transformer");
  part->add_option("data", o.data,
                   "SOURCE and TARGET, whose lines translate each other; a table of both, or an "
                   "archive; or a folder with train.en, train.de, dev.*, test.*, or one that "
                   "prepare made")
      ->required()
      ->expected(1, 2);
  part->add_option("--dev", o.dev, "source and target to validate on, or a table")->expected(1, 2);
  part->add_option("--test", o.test, "source and target to test on, or a table")->expected(1, 2);
  part->add_option("--source-language", o.source_language,
                   "of a folder: which ending is it; of a table: which column");
  part->add_option("--source-column", o.columns.text,
                   "of a table: the column of the source, its name or number from 1");
  part->add_option("--target-column", o.columns.pair, "of a table: the column of the target");
  add_common(*part, o);
}

void add_images(CommandLine& app, NewOptions& o) {
  CommandLine* part = app.add_subcommand("images", "images to classes, with a ResNet");
  part->add_option(
          "data", o.data,
          "folder with CLASS/FILE.jpg or train/CLASS and val/CLASS, an archive, the files of "
          "MNIST or CIFAR, or a folder that prepare made")
      ->required()
      ->expected(1);
  part->add_option("--labels,--val-labels", o.images_labels,
                   "csv or list of FILE CLASS, for images without class folders");
  part->add_option("--label", o.columns.label,
                   "of the csv, or of a table of pixels: column of the classes");
  part->add_flag("--classes-by-name", o.images_by_name,
                 "images without class folders are named after them: cat.0.jpg");
  add_common(*part, o);
}

void add_text(CommandLine& app, NewOptions& o) {
  CommandLine* part = app.add_subcommand("text", "texts to classes or numbers, with a BERT");
  part->add_option("data", o.data,
                   "csv, tsv, JSON lines, Parquet, an archive; or a folder with train.*, "
                   "validation.*, test.* "
                   "or train/CLASS/*.txt, or one that prepare made")
      ->required()
      ->expected(1);
  part->add_option("--text", o.columns.text, "column of the text: its name, or number from 1");
  part->add_option("--pair", o.columns.pair, "column of the second text of a pair");
  part->add_option("--label", o.columns.label, "column of the label");
  part->add_flag("--regression", o.values, "labels are numbers to be predicted");
  part->add_option("--model", o.model,
                   "begin with this: a folder of transformers, or hf:OWNER/NAME of the hub");
  add_common(*part, o);
}

}  // namespace

int new_run(const Arguments& arguments) {
  const bool names_kind = !arguments.empty() && !arguments[0].starts_with("-");
  if (names_kind) new_run_makers().get(arguments[0]);  // suggests the nearest name when it throws
  NewOptions o;
  CommandLine app("A configuration with its reasons, from your data and this machine.",
                  "lockstep new");
  app.require_subcommand();
  add_translation(app, o);
  add_images(app, o);
  add_text(app, o);
  if (!app.parse(arguments)) return kExitOk;
  const WrittenRun written = write_new_run(arguments[0], o);
  for (const std::string& line : written.seen) fmt::print("{}\n", line);
  fmt::print("\n{} written: what was chosen and why is in it. Next:\n", written.config);
  for (const std::string& command : written.next) fmt::print("  {}\n", command);
  return kExitOk;
}

}  // namespace lockstep
