#include "data/tokenize/published_vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVocabulary = "vocab.json";
constexpr const char* kTargetVocabulary = "target_vocab.json";
constexpr const char* kSourceModel = "source.spm";
constexpr const char* kTargetModel = "target.spm";
constexpr const char* kOneModel = "sentencepiece.bpe.model";
constexpr int64_t kMostIds = 1 << 24;

// The languages of M2M100 (Fan et al. 2020, table 1) and of its WMT21 models (Tran et al. 2021) in
// the order of their ids, which no file of theirs gives.
constexpr const char* kM2m100Languages =
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu "
    "ha "
    "he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my "
    "ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz "
    "vi "
    "wo xh yi yo zh zu";
constexpr const char* kWmt21Languages = "en ha is ja cs ru zh de";

// The files of one folder; remembers those that were read.
class Folder {
 public:
  explicit Folder(fs::path path) : path_(std::move(path)) {}

  bool has(const char* name) const { return fs::exists(path_ / name); }
  std::string name_of(const char* name) const { return (path_ / name).string(); }

  std::string read(const char* name, const char* whole) {
    if (!has(name)) {
      DataError error("{}: there is no {}", path_.string(), name);
      error.set_cause(whole);
      throw error;
    }
    files_.emplace_back(name, read_file(path_ / name));
    return files_.back().second;
  }

  // Returns an empty object when the file is absent and not required.
  Json object(const char* name, const char* whole = nullptr) {
    if (whole == nullptr && !has(name)) return Json::object();
    Json json = Json::parse(read(name, whole), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) throw DataError("{}: not a JSON object", name_of(name));
    return json;
  }

  std::vector<std::pair<std::string, std::string>> take_files() { return std::move(files_); }

 private:
  fs::path path_;
  std::vector<std::pair<std::string, std::string>> files_;
};

// A token is a text or an object with its text.
std::string token_text(const Json& token) {
  if (token.is_string()) return token;
  if (token.is_object() && token.contains("content")) return token_text(token.at("content"));
  return "";
}

std::string setting(const Json& config, const char* key, const std::string& fallback) {
  const std::string text = token_text(config.value(key, Json()));
  return text.empty() ? fallback : text;
}

void put_piece(const std::string& piece, int64_t id, const std::string& file, PieceTable& out) {
  if (id < 0 || id >= kMostIds) {
    throw DataError("{}: \"{}\" has the id {}; expected 0 or more, and below {}", file, piece, id,
                    kMostIds);
  }
  if (id >= std::ssize(out.pieces)) out.pieces.resize(static_cast<std::size_t>(id) + 1);
  out.pieces[static_cast<std::size_t>(id)] = piece;
  out.ids[piece] = static_cast<int32_t>(id);
}

PieceTable table_of(const Json& json, const std::string& file) {
  PieceTable out;
  for (const auto& [piece, id] : json.items()) {
    if (!id.is_number_integer()) throw DataError("{}: the id of \"{}\" is no number", file, piece);
    put_piece(piece, id.get<int64_t>(), file, out);
  }
  return out;
}

int32_t id_in(const PieceTable& table, const std::string& piece) {
  const auto at = table.ids.find(piece);
  return at == table.ids.end() ? -1 : at->second;
}

// Looks up the special tokens by the names in tokenizer_config.json. </s> and <unk> must be there.
SpecialPieces special_in(const PieceTable& table, const Json& config, const std::string& file) {
  SpecialPieces out;
  out.pad = id_in(table, setting(config, "pad_token", "<pad>"));
  out.eos = id_in(table, setting(config, "eos_token", "</s>"));
  out.bos = id_in(table, setting(config, "bos_token", "<s>"));
  out.unk = id_in(table, setting(config, "unk_token", "<unk>"));
  if (out.eos < 0) throw DataError("{}: has no </s>", file);
  if (out.unk < 0) throw DataError("{}: has no <unk>", file);
  return out;
}

void read_marian(Folder& folder, const Json& config, PublishedVocabulary& out) {
  constexpr const char* kWhole =
      "the vocabulary of a Marian model is source.spm, target.spm and vocab.json";
  out.kind = VocabularyKind::kMarian;
  out.source_model = folder.read(kSourceModel, kWhole);
  out.target_model = folder.read(kTargetModel, kWhole);
  out.source = table_of(folder.object(kVocabulary, kWhole), folder.name_of(kVocabulary));
  if (config.value("separate_vocabs", false)) {
    out.own_target = table_of(
        folder.object(kTargetVocabulary, "separate_vocabs of tokenizer_config.json promises it"),
        folder.name_of(kTargetVocabulary));
  }
  out.special = special_in(out.target(), config, folder.name_of(kVocabulary));
  for (const auto& [piece, id] : out.source.ids) {
    if (piece.size() > 4 && piece.starts_with(">>") && piece.ends_with("<<")) {
      out.languages[piece.substr(2, piece.size() - 4)] = id;
    }
  }
}

void read_m2m100(Folder& folder, const Json& config, PublishedVocabulary& out) {
  constexpr const char* kWhole =
      "the vocabulary of an M2M100 is sentencepiece.bpe.model and vocab.json";
  out.kind = VocabularyKind::kM2m100;
  out.source_model = out.target_model = folder.read(kOneModel, kWhole);
  const Json vocabulary = folder.object(kVocabulary, kWhole);
  out.source = table_of(vocabulary, folder.name_of(kVocabulary));
  out.special = special_in(out.source, config, folder.name_of(kVocabulary));
  const std::string set = setting(config, "language_codes", "m2m100");
  const char* languages = set == "m2m100"  ? kM2m100Languages
                          : set == "wmt21" ? kWmt21Languages
                                           : nullptr;
  if (languages == nullptr) {
    throw DataError("{}: language_codes is \"{}\"; expected m2m100 or wmt21",
                    folder.name_of("tokenizer_config.json"), set);
  }
  int64_t id = std::ssize(vocabulary);
  for (std::string_view language : split_words(languages)) {
    out.languages[std::string(language)] = static_cast<int32_t>(id);
    put_piece(fmt::format("__{}__", language), id++, folder.name_of(kVocabulary), out.source);
  }
}

// The tokens that were added to a SentencePiece model, and their ids. Old repositories list only
// their order; they follow the model's pieces, of which there are `pieces`.
std::vector<std::pair<std::string, int64_t>> added_tokens(Folder& folder, const Json& config,
                                                          int64_t pieces) {
  std::vector<std::pair<std::string, int64_t>> out;
  const Json stored = config.value("added_tokens_decoder", Json::object());
  for (const auto& [id, token] : stored.items()) {
    out.emplace_back(token_text(token), std::stoll(id));
  }
  if (out.size() > 8) return out;  // more than the special ones
  const Json added = folder.object("added_tokens.json");
  for (const auto& [token, id] : added.items()) out.emplace_back(token, id.get<int64_t>());
  if (added.size() > 1) return out;
  const Json map = folder.object("special_tokens_map.json");
  for (const Json* from : {&map, &config}) {
    const Json tokens = from->value("additional_special_tokens", Json::array());
    if (!tokens.is_array() || tokens.empty()) continue;
    for (const Json& token : tokens) out.emplace_back(token_text(token), pieces++);
    out.emplace_back(setting(config, "mask_token", "<mask>"), pieces);
    return out;
  }
  DataError error("{}: lists no languages", folder.name_of("special_tokens_map.json"));
  error.set_cause(
      "an NLLB has them in tokenizer_config.json (added_tokens_decoder), added_tokens.json or "
      "special_tokens_map.json (additional_special_tokens)");
  throw error;
}

void read_nllb(Folder& folder, const Json& config, PublishedVocabulary& out) {
  if (config.value("legacy_behaviour", false)) {
    throw DataError(
        "{}: legacy_behaviour puts the language behind </s>, which lockstep does not do; expected "
        "false",
        folder.name_of("tokenizer_config.json"));
  }
  out.kind = VocabularyKind::kNllb;
  out.source_model = out.target_model = folder.read(
      kOneModel, "the vocabulary of an NLLB is sentencepiece.bpe.model and its languages");
  const Subword model = Subword::from_bytes(out.source_model, folder.name_of(kOneModel));
  const char* const special[] = {"<s>", "<pad>", "</s>", "<unk>"};
  for (int32_t id = 0; id < 4; ++id) put_piece(special[id], id, kOneModel, out.source);
  for (int32_t id = 3; id < model.vocab_size(); ++id) {
    put_piece(model.piece(id), id + 1, kOneModel, out.source);
  }
  out.special = special_in(out.source, config, folder.name_of(kOneModel));
  const std::string mask = setting(config, "mask_token", "<mask>");
  for (const auto& [token, id] : added_tokens(folder, config, model.vocab_size() + 1)) {
    if (id <= model.vocab_size()) continue;  // one of the special ones
    put_piece(token, id, folder.name_of("tokenizer_config.json"), out.source);
    if (token != mask) out.languages[token] = static_cast<int32_t>(id);
  }
}

}  // namespace

const std::vector<std::string>& published_vocabulary_files() {
  static const std::vector<std::string> names = {
      kVocabulary, kTargetVocabulary,       kSourceModel,        kTargetModel,
      kOneModel,   "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"};
  return names;
}

bool has_published_vocabulary(const fs::path& folder) {
  const char* const names[] = {kVocabulary, kSourceModel, kTargetModel, kOneModel};
  return std::any_of(std::begin(names), std::end(names),
                     [&](const char* name) { return fs::exists(folder / name); });
}

PublishedVocabulary read_published_vocabulary(const fs::path& path) {
  Folder folder(path);
  PublishedVocabulary out;
  try {
    const Json config = folder.object("tokenizer_config.json");
    const bool nllb = setting(config, "tokenizer_class", "").starts_with("Nllb");
    if (folder.has(kOneModel)) {
      nllb || !folder.has(kVocabulary) ? read_nllb(folder, config, out)
                                       : read_m2m100(folder, config, out);
      out.source_language = setting(config, "src_lang", "");
      out.target_language = setting(config, "tgt_lang", "");
    } else if (nllb || setting(config, "tokenizer_class", "").starts_with("M2M100")) {
      folder.read(kOneModel, "tokenizer_config.json names a tokenizer that consists of it");
    } else {
      read_marian(folder, config, out);
      out.source_language = setting(config, "source_lang", "");
      out.target_language = setting(config, "target_lang", "");
    }
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: the tokenizer's files are damaged", path.string());
    error.set_cause(problem.what());
    throw error;
  } catch (const std::logic_error&) {  // std::stoll
    throw DataError("{}: an id in added_tokens_decoder is no number",
                    folder.name_of("tokenizer_config.json"));
  }
  out.files = folder.take_files();
  return out;
}

}  // namespace lockstep
