// The network of a translation task and its vocabulary: new by the configuration, or as the
// config.json of a model says with which the run begins or that is used (docs/translation.md).
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/fetch/hub.h"
#include "data/tokenize/published_vocabulary.h"
#include "models/hugging_face.h"
#include "tasks/translation.h"

namespace lockstep {

void TranslationModelConfig::describe(Fields& f) {
  f("source", &source, InputPath{},
    "what it begins with: a folder of transformers with a Marian (OPUS-MT), M2M100 or NLLB-200, or "
    "one that lockstep exported, or hf:OWNER/NAME[@REVISION] from the Hugging Face hub; its "
    "config.json then says all of this section but the dropouts; empty: a new network");
  f("source_language", &source_language, Any{},
    "for a vocabulary with tokens of languages: en (M2M100), eng_Latn (NLLB); empty: as the corpus "
    "or the tokenizer says");
  f("target_language", &target_language, Any{}, "likewise; of a multilingual Marian the >>token<<");
  TransformerConfig::describe(f);
}

// A run that exists has the config.json under another name, beside its configuration.
fs::path Translation::choose_network() {
  const bool in_use = !context_.run_folder.empty();
  const fs::path& own = in_use ? context_.run_folder : context_.resumed_folder;
  if (!own.empty() && fs::exists(own / kNetworkOfRun)) {
    take_network(own / kNetworkOfRun);
    return {};
  }
  if (in_use) {
    if (is_published_model(own)) take_network(own / "config.json");
    return {};
  }
  if (config_.model.source.empty()) return {};
  const fs::path source = find_model(config_.model.source);
  fetch_companions(config_.model.source, source, companion_files());
  take_network(source / "config.json");
  check_vocabulary(config_.model.source, source);
  return source;
}

void Translation::take_network(const fs::path& config) {
  TransformerConfig read;
  const std::string text = read_file(config);
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("lockstep")) {
    read = read_hugging_face_config(config).config;
    exported_json_ = text;
  } else {
    published_ = read_published_model(config);
    read = published_->config;
  }
  const TransformerConfig& here = config_.model;
  read.dropout = here.dropout;
  read.attention_dropout = here.attention_dropout;
  read.relu_dropout = here.relu_dropout;
  read.longest = here.longest;
  static_cast<TransformerConfig&>(config_.model) = read;
}

void Translation::check_vocabulary(const std::string& source_name, const fs::path& source) const {
  const TranslationTokenizer theirs = TranslationTokenizer::load(source);
  if (theirs.identity() == tokenizer_->identity()) return;
  DataError error("{}: encoded with another vocabulary than that of {}", config_.corpus,
                  source_name);
  error.set_cause(
      fmt::format("{} pieces here, {} there{}", with_commas(tokenizer_->vocab_size()),
                  with_commas(theirs.vocab_size()),
                  tokenizer_->vocab_size() == theirs.vocab_size() ? ", but others" : ""));
  error.set_advice("lockstep prepare text SOURCE TARGET --out FOLDER --vocab " + source_name);
  throw error;
}

// A published network may have more rows than its vocabulary has pieces, but not fewer.
void Translation::check_tokenizer_fits() const {
  if (!tokenizer_->is_own() && !published_) {
    throw DataError(
        "{}: the vocabulary of a published model, and no network for it; expected model.source",
        context_.run_folder.empty() ? config_.corpus : context_.run_folder.string());
  }
  if (!published_) return;
  auto check = [&](const char* side, int64_t pieces, int64_t rows) {
    if (pieces <= rows) return;
    throw DataError("the vocabulary of the {} has {} pieces, but the network has {} rows for it",
                    side, with_commas(pieces), with_commas(rows));
  };
  check("source", tokenizer_->source_vocab_size(), published_->source_vocabulary());
  check("target", tokenizer_->vocab_size(), published_->vocabulary);
}

// The key decides, then the corpus, then the tokenizer's own setting.
int32_t Translation::language_token(const std::string& side) const {
  const bool source = side == "source";
  const std::string key = "model." + side + "_language";
  const std::string& asked = source ? config_.model.source_language : config_.model.target_language;
  if (!asked.empty()) return *tokenizer_->language_id(key, asked);
  const fs::path manifest = context_.run_folder.empty() ? fs::path(config_.corpus) / kManifestName
                                                        : context_.run_folder / "corpus.json";
  std::string name = "tokenizer_config.json";
  std::string language = source ? tokenizer_->source_language() : tokenizer_->target_language();
  if (fs::exists(manifest)) {
    const auto json = nlohmann::json::parse(read_file(manifest), nullptr, false);
    if (json.is_object()) language = json.value(side + "_language", language);
    name = manifest.string();
  }
  if (!language.empty()) {
    try {
      return *tokenizer_->language_id(key, language);
    } catch (ConfigError& error) {
      error.set_cause(fmt::format("the key is not set, and {} says \"{}\"", name, language));
      error.set_advice(key + "=LANGUAGE, as the model calls it");
      throw;
    }
  }
  if (!source && published_ && published_->forced_bos) return *published_->forced_bos;
  ConfigError error("{}: not set, and this model translates between many languages", key);
  error.set_advice(key + (tokenizer_->kind() == VocabularyKind::kNllb ? "=deu_Latn" : "=de"));
  throw error;
}

SpecialIds Translation::choose_special_ids() const {
  if (!published_) return special_ids(tokenizer_->subword());
  SpecialIds out;
  out.unk = tokenizer_->special().unk;
  out.pad = published_->pad;
  out.eos = published_->eos;
  out.bos = published_->start;
  out.never = published_->never;
  out.ends_at_limit = published_->ends_at_limit;
  out.renormalizes = published_->renormalizes;
  out.primer.emplace();
  std::optional<int32_t> first = published_->forced_bos;
  if (tokenizer_->kind() == VocabularyKind::kMarian) {
    const std::string& target = config_.model.target_language;
    if (!target.empty() && tokenizer_->has_languages()) {
      out.source_prefix = {*tokenizer_->language_id("model.target_language", target)};
    }
  } else if (tokenizer_->has_languages()) {
    out.source_prefix = {language_token("source")};
    first = language_token("target");
  }
  if (first) {
    out.primer = {published_->start};
    out.bos = *first;
  }
  return out;
}

void Translation::begin_with(const fs::path& folder) {
  const TransformerConfig& c = config_.model;
  std::vector<std::string> notes;
  if (published_) {
    notes = read_published_weights(folder, *published_, parameters_);
  } else {
    read_hugging_face_weights(folder, parameters_);
  }
  log_info("a {} of {}+{} layers and width {} from {}",
           published_ ? published_->type : "model of lockstep", c.encoder_layers, c.decoder_layers,
           c.d_model, folder.string());
  for (const std::string& note : notes) log_info("  {}", note);
}

void Translation::save_network(const fs::path& run_folder) const {
  if (published_) {
    write_file(run_folder / kNetworkOfRun, published_->config_json);
    if (!published_->generation_json.empty()) {
      write_file(run_folder / kGenerationFile, published_->generation_json);
    }
  } else if (!exported_json_.empty()) {
    write_file(run_folder / kNetworkOfRun, exported_json_);
  }
}

std::vector<std::string> Translation::companion_files() const {
  std::vector<std::string> names = published_vocabulary_files();
  names.emplace_back(kGenerationFile);
  return names;
}

}  // namespace lockstep
