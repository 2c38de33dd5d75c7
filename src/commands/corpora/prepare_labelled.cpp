#include "commands/corpora/prepare_labelled.h"

#include <fmt/format.h>

#include <chrono>

#include "base/text.h"
#include "data/fetch/hub.h"

namespace lockstep {

namespace {

std::optional<bool> choice(const std::string& word) {
  return word == "auto" ? std::nullopt : std::optional(word == "yes");
}

// Reads names from a file with one per line, or from a comma-separated list.
std::vector<std::string> class_names(const std::string& text) {
  std::vector<std::string> out;
  if (text.empty()) return out;
  for (const std::string& name : fs::exists(text) ? read_lines(text) : split(text, ',')) {
    if (!trim(name).empty()) out.emplace_back(trim(name));
  }
  if (out.size() < 2) throw ConfigError("--classes {}: expected two names or more", text);
  return out;
}

}  // namespace

PrepareLabelledCommand::PrepareLabelledCommand(CommandLine& app) {
  command_ = app.add_subcommand(
      "labelled", "texts or pairs with labels (csv, tsv, jsonl, parquet, folders) for BERT");
  add_source_options();
  add_column_options();
}

void PrepareLabelledCommand::add_source_options() {
  CommandOption input = command_->add_option(
      "input", options_.input,
      "a file, an archive, a folder with train.csv or train/CLASS/*.txt and so on, or "
      "hf:datasets/OWNER/NAME[@REVISION] of the Hugging Face hub");
  auto given = [&](const char* name, std::vector<fs::path>& files) {
    command_->add_option(name, files, "files of that split, in place of input")->excludes(input);
  };
  given("--train", train_);
  given("--validation", validation_);
  given("--test", test_);
  hub_.add_options(*command_);
  command_->add_option("--out", options_.out, "folder to write into")->required();
  command_
      ->add_option("--vocab", options_.vocabulary,
                   "vocab.txt or tokenizer.json of a BERT, the folder with it, or hf:OWNER/NAME")
      ->required();
  CommandOption cased =
      command_->add_flag("--cased", cased_, "neither lower-cased nor stripped of accents");
  command_->add_flag("--uncased", uncased_, "lower-cased (default: as the folder says, or so)")
      ->excludes(cased);
  command_
      ->add_option("--max-length", options_.max_length,
                   "ids at most, [CLS] and [SEP] included; the longer of two texts is cut first")
      ->capture_default_str();
  command_
      ->add_option("--hold-out", options_.hold_out, "share of train that becomes validation, 0.1")
      ->capture_default_str();
  command_->add_option("--seed", options_.seed, "of --hold-out")->capture_default_str();
  command_->add_option("--threads", options_.threads, "0: one a core")->capture_default_str();
}

void PrepareLabelledCommand::add_column_options() {
  TextColumns& wanted = options_.columns.wanted;
  command_->add_option("--text", wanted.text, "column of the text: its name, or number from 1");
  command_->add_option("--pair", wanted.pair, "column of the second text of a pair");
  command_->add_option("--label", wanted.label, "column of the label, or none");
  auto yes_no = [&](const char* name, std::string& value, const char* help) {
    command_->add_option(name, value, help)->one_of({"auto", "yes", "no"})->capture_default_str();
  };
  yes_no("--header", header_, "csv and tsv: the first line names the columns");
  yes_no("--quotes", quotes_, "fields may stand in quotes; auto: in csv, not in tsv");
  command_->add_option("--classes", classes_,
                       "names of the labels in order: a,b,c or a file with one a line");
  command_->add_flag("--regression", options_.regression, "labels are numbers to be predicted");
  command_->add_option("--empty", empty_, "empty texts: fail, skip (and count), keep")
      ->one_of({"fail", "skip", "keep"})
      ->capture_default_str();
}

void PrepareLabelledCommand::finish_options() {
  auto add = [&](const char* name, const std::vector<fs::path>& files) {
    if (!files.empty()) options_.splits.push_back({name, files});
  };
  add("train", train_);
  add("validation", validation_);
  add("test", test_);
  if (options_.splits.empty() && options_.input.empty()) {
    throw ConfigError(
        "no input: a file or folder, or --train FILE; see: lockstep prepare labelled "
        "--help");
  }
  if (options_.input.empty()) options_.input = options_.splits[0].files[0];
  if (cased_ || uncased_) options_.lowercase = uncased_;
  if (options_.columns.wanted.label == "none") {
    options_.columns.wanted.label.clear();
    options_.columns.labels = false;
  }
  options_.header = choice(header_);
  options_.quotes = choice(quotes_);
  options_.classes = class_names(classes_);
  if (options_.regression && !options_.classes.empty()) {
    throw ConfigError("--regression: numbers have no --classes");
  }
  options_.empty = empty_ == "fail"   ? EmptyTexts::kFail
                   : empty_ == "skip" ? EmptyTexts::kSkip
                                      : EmptyTexts::kKeep;
}

void PrepareLabelledCommand::take_data_set(const HubData& data) {
  options_.input_name = data.name();
  options_.class_names = data.class_names;
  for (const HubSplit& split : data.splits) {
    TextSplitInput& input = options_.splits.emplace_back(TextSplitInput{split.name, {}});
    for (const std::string& file : split.files) input.files.push_back(data.folder / file);
  }
}

int PrepareLabelledCommand::run() {
  finish_options();
  const std::string input = options_.splits.empty() ? options_.input.string() : "";
  if (auto data = hub_.fetch(input, HubContent::kTables)) take_data_set(*data);
  const std::string vocabulary = options_.vocabulary.string();
  if (hub_reference(vocabulary)) options_.vocabulary = find_model(vocabulary);
  const auto start = std::chrono::steady_clock::now();
  const TextManifest manifest = prepare_labelled(options_);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  int64_t texts = 0;
  for (const TextSplitRecord& split : manifest.splits) texts += split.examples + split.skipped;
  fmt::print("{}\n{} ready in {:.1f} s ({} texts/s)\n", describe_labelled(manifest),
             options_.out.string(), seconds.count(),
             with_commas(static_cast<int64_t>(static_cast<double>(texts) / seconds.count())));
  return kExitOk;
}

}  // namespace lockstep
