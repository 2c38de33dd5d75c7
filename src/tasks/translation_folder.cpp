// Exports and imports a translation model as a folder for transformers, CTranslate2, and `lockstep
// translate` on a machine that has nothing else of the run (docs/export.md).
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "models/hugging_face.h"
#include "tasks/edge_export.h"
#include "tasks/translation.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// The language codes, such as "en" and "de"; null where the run does not say.
struct Languages {
  Json source, target;
};

Languages languages_of(const fs::path& run_folder) {
  const fs::path path = run_folder / "corpus.json";
  if (run_folder.empty() || !fs::exists(path)) return {};
  const Json json = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw DataError("{}: not valid JSON", path.string());
  return {json.value("source_language", Json()), json.value("target_language", Json())};
}

// Maps pieces to ids. Ids beyond the pieces, and <pad> of a vocabulary that has its own, get names
// that occur in no text.
Json vocabulary_json(const Subword& subword, const ExportedIds& ids) {
  Json out = Json::object();
  // The tokenizer adds language codes behind these itself.
  const int64_t named = ids.starts_with_zero() ? ids.prefix : ids.vocabulary;
  for (int64_t id = 0; id < named; ++id) {
    std::string name = id < subword.vocab_size() ? subword.piece(static_cast<int32_t>(id)) : "";
    const bool taken = ids.pad >= subword.vocab_size() && id == subword.pad_id();
    if (id >= subword.vocab_size() || taken) name = fmt::format("<unused{}>", id);
    if (id == ids.pad && id >= subword.vocab_size()) name = "<pad>";
    out[name] = id;
  }
  return out;
}

// The codes of M2M100Tokenizer with language_codes = "wmt21".
constexpr std::array<const char*, kLanguageCodes> kCodes = {"en", "ha", "is", "ja",
                                                            "cs", "ru", "zh", "de"};

// Tells the tokenizer, and CTranslate2 through it, of the ids of the language codes.
Json language_codes_json(const ExportedIds& ids) {
  Json out = Json::object();
  for (std::size_t i = 0; i < kCodes.size(); ++i) {
    out[fmt::to_string(ids.prefix + static_cast<int64_t>(i))] = {
        {"content", fmt::format("__{}__", kCodes[i])},
        {"lstrip", false},
        {"rstrip", false},
        {"normalized", false},
        {"single_word", false},
        {"special", true}};
  }
  return out;
}

Json tokenizer_json(const Subword& subword, const ExportedIds& ids, const Languages& languages) {
  const bool own_pad = ids.pad >= subword.vocab_size();
  auto piece = [&](int64_t id) { return subword.piece(static_cast<int32_t>(id)); };
  if (ids.starts_with_zero()) {
    // The code of "en" stands for <s> before each source, whatever its language.
    return {{"tokenizer_class", "M2M100Tokenizer"},
            {"language_codes", "wmt21"},
            {"src_lang", "en"},
            {"tgt_lang", "en"},
            {"bos_token", piece(subword.bos_id())},
            {"sep_token", piece(subword.eos_id())},
            {"unk_token", piece(subword.unk_id())},
            {"eos_token", piece(subword.eos_id())},
            {"pad_token", "<pad>"},
            {"added_tokens_decoder", language_codes_json(ids)},
            {"clean_up_tokenization_spaces", false},
            {"model_max_length", 1024}};
  }
  return {{"tokenizer_class", "MarianTokenizer"},
          {"source_lang", languages.source},
          {"target_lang", languages.target},
          {"unk_token", piece(subword.unk_id())},
          {"eos_token", piece(subword.eos_id())},
          {"pad_token", own_pad ? "<pad>" : piece(ids.pad)},
          {"separate_vocabs", false},
          {"clean_up_tokenization_spaces", false},
          {"model_max_length", 1024}};
}

// Returns the ids that are never produced: the special pieces except </s>, and ids without a piece.
Json suppressed_ids(const Subword& subword, const ExportedIds& ids) {
  Json out = Json::array();
  for (int32_t id : {subword.pad_id(), subword.bos_id(), subword.unk_id()}) {
    // The first token is <s> where the decoder starts from zeros: it must not be ruled out.
    const bool forced = ids.starts_with_zero() && id == subword.bos_id();
    if (id >= 0 && !forced) out.push_back(id);
  }
  for (int64_t id = subword.vocab_size(); id < ids.vocabulary; ++id) out.push_back(id);
  return out;
}

Json generation_json(const Subword& subword, const ExportedIds& ids, const BeamOptions& decoding) {
  Json out = {{"num_beams", decoding.beam_size},
              {"length_penalty", decoding.length_penalty},
              {"early_stopping", false},
              {"max_length", 512},
              {"suppress_tokens", suppressed_ids(subword, ids)},
              {"pad_token_id", ids.pad},
              {"bos_token_id", ids.start},
              {"eos_token_id", ids.eos},
              {"decoder_start_token_id", ids.start}};
  if (ids.starts_with_zero()) out["forced_bos_token_id"] = ids.bos;
  return out;
}

void write_json(const fs::path& path, const Json& json) { write_file(path, json.dump(2) + "\n"); }

void make_folder(const fs::path& folder) {
  if (is_hugging_face_folder(folder)) {
    ConfigError error("{}: already holds a model (config.json)", folder.string());
    error.set_advice(fmt::format("--out {}-2, or remove it", folder.string()));
    throw error;
  }
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder.string(), failed.message());
}

int64_t bytes_in(const fs::path& folder) {
  int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// What transformers' generate() does with the model, as keys of lockstep; open() reads the network
// from config.json itself. Their lengths count the decoder's first input, ours do not.
Settings published_settings(const PublishedModel& model) {
  const int64_t given = model.type == "marian" ? 1 : 2;  // <pad>; </s> and the language
  Settings out = {{"run.precision", "fp32"},
                  {"decoding.length_norm", "tokens"},
                  {"decoding.length_penalty", fmt::to_string(model.length_penalty)},
                  {"decoding.stop", model.early_stopping ? "full" : "all_beams"}};
  if (model.beam_size) out.emplace_back("decoding.beam_size", fmt::to_string(*model.beam_size));
  if (model.max_length) {
    out.emplace_back("decoding.max_length_factor", "0");
    out.emplace_back("decoding.max_length_extra",
                     fmt::to_string(std::max<int64_t>(1, *model.max_length - given)));
  }
  if (model.min_length > given) {
    out.emplace_back("decoding.min_length", fmt::to_string(model.min_length - given));
  }
  return out;
}

}  // namespace

// config.json is written last: a folder that has one is complete.
int64_t Translation::write_folder(const ModelFolderOptions& options) {
  if (options.format == "edge") {
    return export_edge(options.folder,
                       {*model_, *tokenizer_, special_, config_.decoding, options.precision});
  }
  if (options.format != "huggingface") {
    throw ConfigError("--format {}: for images only; expected huggingface or edge", options.format);
  }
  if (published_) return write_published_folder(options);
  const TransformerConfig& config = config_.model;
  check_exportable(config);
  const Languages languages = languages_of(options.run_folder);
  const ExportedIds ids = exported_ids(config, model_->vocabulary(), special_.bos, special_.eos);
  const Subword& subword_used = tokenizer_->subword();
  make_folder(options.folder);
  auto file = [&](const char* name) { return options.folder / name; };
  write_hugging_face_weights(file("model.safetensors"), *model_, parameters_, ids,
                             options.precision);
  const std::string pieces = subword_used.serialized();
  write_file(file(kExportedSubword), pieces);
  write_file(file(ids.starts_with_zero() ? "sentencepiece.bpe.model" : "target.spm"), pieces);
  write_json(file("vocab.json"), vocabulary_json(subword_used, ids));
  write_json(file("tokenizer_config.json"), tokenizer_json(subword_used, ids, languages));
  write_json(file("generation_config.json"), generation_json(subword_used, ids, config_.decoding));
  Json json = hugging_face_config(config, ids, options.precision);
  const BeamOptions& decoding = config_.decoding;
  json["lockstep"]["decoding"] = {{"beam_size", decoding.beam_size},
                                  {"length_penalty", decoding.length_penalty}};
  write_json(file("config.json"), json);
  return bytes_in(options.folder);
}

// Such a model goes back as it came: with its own config.json and tokenizer, and other weights.
int64_t Translation::write_published_folder(const ModelFolderOptions& options) {
  if (options.precision == "int8") {
    throw ConfigError(
        "--precision int8: of networks that lockstep made, not of one that began as a published "
        "model; expected fp32 or bf16 (decoding.precision=int8 decodes any in int8)");
  }
  make_folder(options.folder);
  for (const auto& [name, contents] : tokenizer_->files()) {
    write_file(options.folder / name, contents);
  }
  if (!published_->generation_json.empty()) {
    write_file(options.folder / kGenerationFile, published_->generation_json);
  }
  write_published_model(options.folder, *published_, parameters_, options.precision);
  return bytes_in(options.folder);
}

// Accepts any model that no other task recognizes: reading it reports what is wrong.
bool Translation::recognizes_folder(const fs::path& folder) const {
  return is_hugging_face_folder(folder);
}

std::vector<std::pair<std::string, std::string>> Translation::folder_settings(
    const fs::path& folder) const {
  if (is_published_model(folder)) {
    return published_settings(read_published_model(folder / "config.json"));
  }
  const HuggingFaceModel model = read_hugging_face_config(folder);
  const TransformerConfig& c = model.config;
  std::vector<std::pair<std::string, std::string>> out = {
      {"model.d_model", fmt::to_string(c.d_model)},
      {"model.heads", fmt::to_string(c.heads)},
      {"model.encoder_layers", fmt::to_string(c.encoder_layers)},
      {"model.decoder_layers", fmt::to_string(c.decoder_layers)},
      {"model.feed_forward", fmt::to_string(c.feed_forward)},
      {"model.dropout", fmt::to_string(c.dropout)},
      {"model.attention_dropout", fmt::to_string(c.attention_dropout)},
      {"model.relu_dropout", fmt::to_string(c.relu_dropout)},
      {"model.norm", c.norm},
      {"model.norm_epsilon", fmt::to_string(c.norm_epsilon)},
      {"model.start", c.start},
      {"model.activation", c.activation},
      {"model.positions", c.positions},
      {"model.vocabulary_multiple", fmt::to_string(c.vocabulary_multiple)},
      {"run.precision", model.precision == "bf16" ? "bf16" : "fp32"},
      {"decoding.beam_size", fmt::to_string(model.beam_size)},
      {"decoding.length_penalty", fmt::to_string(model.length_penalty)}};
  if (model.precision == "int8") out.emplace_back("decoding.precision", "int8");
  return out;
}

void Translation::load_folder(const fs::path& folder) {
  if (!published_) return read_hugging_face_weights(folder, parameters_);
  for (const std::string& note : read_published_weights(folder, *published_, parameters_)) {
    log_info("{}", note);
  }
}

}  // namespace lockstep
