#include "recipe/new_run.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "data/fetch/hub.h"
#include "data/images/images_manifest.h"
#include "data/labelled/pair_input.h"
#include "data/manifest/manifest.h"
#include "models/bert_weights.h"
#include "recipe/images_rules.h"
#include "recipe/machine_facts.h"
#include "recipe/texts_rules.h"
#include "recipe/translation_facts.h"
#include "recipe/translation_rules.h"
#include "train/config/run_config.h"

namespace lockstep {

namespace {

bool is_prepared(const fs::path& data) { return fs::is_directory(data) && has_manifest(data); }

// Throws DataError that names the right command if the folder was prepared from another kind of
// data.
void require_kind(const std::string& kind, const fs::path& folder) {
  const auto json = nlohmann::json::parse(read_file(folder / kManifestName), nullptr, false);
  const std::string there = json.is_object() ? json.value("kind", "") : "";
  const std::string is = there == "images"           ? "images"
                         : there == "labelled texts" ? "text"
                         : there.empty()             ? "translation"
                                                     : "";
  if (is == kind || is.empty()) return;  // damage is reported where it is read
  DataError error("{}: holds prepared data of another kind, {}", folder.string(), is);
  error.set_advice(fmt::format("lockstep new {} {}", is, folder.string()));
  throw error;
}

// Two files, or what is taken out of one that has both languages into the folder.
class GivenPairs {
 public:
  GivenPairs(const NewOptions& options, const fs::path& folder)
      : wanted_{{options.source_language, ""}, options.columns}, folder_(folder) {}

  std::optional<ParallelFiles> files(const std::vector<std::string>& names,
                                     const std::string& split) {
    for (const std::string& name : names) {
      if (fs::is_directory(name)) throw DataError("{}: a folder; expected a file", name);
    }
    if (names.empty()) return std::nullopt;
    if (names.size() == 2) return ParallelFiles{names[0], names[1]};
    if (!may_hold_pairs(names[0])) {
      DataError error("{}: a single file; expected two, or a folder", names[0]);
      error.set_advice(
          "lockstep new translation SOURCE TARGET, whose lines translate each other; alone go "
          ".csv, "
          ".tsv, .jsonl, .json, .parquet, .txt with tabs, and archives");
      throw error;
    }
    const TakenPairs taken = take_pairs(names[0], wanted_, folder_, split);
    wanted_.languages = taken.languages;  // dev and test have those of train
    return taken.files;
  }
  const LanguagePair& languages() const { return wanted_.languages; }

 private:
  PairOptions wanted_;
  fs::path folder_;
};

TranslationFiles translation_files(const NewOptions& options, const fs::path& folder) {
  GivenPairs given(options, folder);
  TranslationFiles out;
  if (options.data.size() == 1 && fs::is_directory(options.data[0])) {
    out = find_translation_files(options.data[0], options.source_language);
  } else {
    out = name_translation_files(*given.files(options.data, "train"));
    if (out.train.taken) {
      out.source_language = given.languages().source;
      out.target_language = given.languages().target;
    }
  }
  if (auto dev = given.files(options.dev, "dev")) out.dev = dev;
  if (auto test = given.files(options.test, "test")) out.test = test;
  out.columns = options.columns;
  return out;
}

NewRun new_translation(const NewOptions& options, const RunNames& names) {
  const TemporaryFolder folder;  // for what is taken out of tables and archives
  TranslationFiles files;
  TranslationFacts facts;
  if (is_prepared(options.data[0])) {
    facts = translation_facts(read_manifest(options.data[0]));
  } else {
    files = translation_files(options, folder.path());
    facts = read_translation_facts(files);
  }
  const MachineFacts machine = read_machine_facts();
  NewRun out{.machine = machine,
             .seen = describe_translation(facts),
             .recipe = translation_recipe(facts, machine, options.budget, names),
             .next = translation_commands(facts, files, names)};
  if (files.train.taken) {
    out.seen.push_back(fmt::format("taken: {}", files.train.taken->parts));
  }
  for (const std::string& stem : files.passed_over) {
    out.seen.push_back(fmt::format("not used: {}.*", stem));
  }
  return out;
}

NewRun new_images(const NewOptions& options, const RunNames& names) {
  const ImagesInput input{options.data[0], options.images_labels, options.columns.label,
                          options.images_by_name};
  const ImagesFacts facts = read_images_facts(input);
  const MachineFacts machine = read_machine_facts();
  const NetworkChoice choice = choose_network(facts, machine, options.budget);
  return {.machine = machine,
          .seen = describe_image_facts(facts),
          .recipe = images_recipe(facts, machine, options.budget, names),
          .next = images_commands(facts, choice.network, input, names)};
}

// Returns the model's folder if it is available without the network.
std::optional<fs::path> model_at_hand(const std::string& source) {
  const std::optional<HubReference> reference = hub_reference(source);
  if (!reference) return is_bert_folder(source) ? std::optional(fs::path(source)) : std::nullopt;
  HubSettings settings = HubSettings::from_environment();
  settings.offline = true;
  try {
    return Hub(settings).model(*reference);
  } catch (const Error&) {
    return std::nullopt;  // the model is not in the cache
  }
}

// Describes the model that the user named. Its sizes are read if it is available locally; otherwise
// those of MiniLM are assumed.
BertSource named_bert(const std::string& source) {
  BertSource out{.source = source, .why = "As --model said."};
  if (const std::optional<fs::path> folder = model_at_hand(source)) {
    const BertShape shape = read_bert_config(*folder).shape;
    const int64_t layer = 4 * shape.hidden_size + 2 * shape.intermediate_size;
    out.size = {shape.num_hidden_layers, shape.hidden_size,
                shape.hidden_size * (shape.vocab_size + shape.max_position_embeddings +
                                     shape.num_hidden_layers * layer)};
    out.longest = shape.max_position_embeddings;
  } else if (!hub_reference(source)) {
    throw DataError("--model {}: no folder with a config.json of BERT", source);
  } else {
    out.why += " Its size is not known before it is fetched: MiniLM's is taken for the estimate.";
  }
  return out;
}

BertSource bert_for(const TextsFacts& facts, const NewOptions& options,
                    const MachineFacts& machine) {
  if (!options.model.empty()) return named_bert(options.model);
  const ModelsAtHand at_hand{.minilm_folder = is_bert_folder("minilm"),
                             .minilm_cached = model_at_hand(kMiniLm).has_value(),
                             .base_cached = model_at_hand(kBertBase).has_value()};
  return choose_bert(facts, machine, options.budget, at_hand);
}

NewRun new_texts(const NewOptions& options, const RunNames& names) {
  TextsCommandsInput commands{
      .input = {options.data[0], options.columns, options.values}, .reading = {}, .source = {}};
  TextsFacts facts;
  if (is_prepared(options.data[0])) {
    facts = texts_facts(read_text_manifest(options.data[0]));
  } else {
    // Tokens are counted with a local vocabulary: all English models share the same one.
    const std::string likely = options.model.empty() ? "minilm" : options.model;
    TextsFound found = read_texts_facts(commands.input, model_at_hand(likely).value_or(""));
    facts = std::move(found.facts);
    commands.reading = std::move(found.reading);
  }
  const MachineFacts machine = read_machine_facts();
  commands.source = bert_for(facts, options, machine);
  commands.longest = choose_texts_length(facts, commands.source, machine, options.budget).longest;
  return {.machine = machine,
          .seen = describe_texts(facts, commands.reading),
          .recipe = texts_recipe(facts, commands.source, machine, options.budget, names),
          .next = texts_commands(facts, commands, names)};
}

std::string precision_text(const MachineFacts& machine) {
  if (machine.gpus > 0) return "chosen by what the GPU computes fast";
  return machine.computes_bf16 ? "bf16 here, which these cores multiply in hardware"
                               : "fp32 here, as these cores have no products in 16 bits";
}

void say_head(const NewOptions& options, NewRun& made) {
  const MachineFacts& machine = made.machine;
  made.recipe.say(fmt::format("Written by lockstep new for {}: {}.", join(options.data, " "),
                              join(made.seen, "; ")));
  for (const std::string& command : made.next) made.recipe.say("  " + command);
  made.recipe.say(
      fmt::format("For {} and {:g} minutes of training. run.precision is left to the "
                  "program: {}. lockstep explain tells of every key.",
                  describe_machine(machine), options.budget.minutes, precision_text(machine)));
}

}  // namespace

const Catalogue<NewRunMaker>& new_run_makers() {
  static const Catalogue<NewRunMaker> catalogue = [] {
    Catalogue<NewRunMaker> c("kind of data");
    c.add("translation", new_translation, "sentences to sentences, with a Transformer");
    c.add("images", new_images, "images to classes, with a ResNet");
    c.add("text", new_texts, "texts to classes or numbers, with a BERT");
    return c;
  }();
  return catalogue;
}

WrittenRun write_new_run(const std::string& kind, const NewOptions& options) {
  const NewRunMaker make = new_run_makers().get(kind);
  for (const std::string& data : options.data) {
    if (!fs::exists(data)) throw DataError("{}: no such file or folder", data);
  }
  if (is_prepared(options.data[0])) require_kind(kind, options.data[0]);
  const RunNames names = choose_names(options.data[0], options.out, is_prepared(options.data[0]));
  require_no_file(names.config);
  NewRun made = make(options, names);
  say_head(options, made);
  const std::string toml = made.recipe.to_toml();
  try {
    read_run_config(ConfigSource::from_text(toml, names.config));
  } catch (const ConfigError& error) {
    throw std::logic_error("lockstep new made a configuration that does not read: " +
                           error.describe());
  }
  write_file(names.config, toml);
  made.seen.push_back(describe_machine(made.machine));
  return {std::move(made.seen), names.config, std::move(made.next)};
}

}  // namespace lockstep
