#include "data/tokenize/bert_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

using TokenizerJson = nlohmann::json;

constexpr const char* kVocabularyName = "vocab.txt";
constexpr const char* kTokenizerName = "tokenizer.json";
constexpr const char* kConfigName = "tokenizer_config.json";

TokenizerJson parse_json(const fs::path& path) {
  try {
    return TokenizerJson::parse(read_file(path));
  } catch (const TokenizerJson::exception& error) {
    throw DataError("{}: not the JSON of a tokenizer: {}", path.string(), error.what());
  }
}

// Returns a value that exists and is not null.
const TokenizerJson* find(const TokenizerJson& json, const char* key) {
  auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

bool flag(const fs::path& path, const TokenizerJson& json, const char* key, bool otherwise) {
  const TokenizerJson* value = find(json, key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    throw DataError("{}: {}: expected true or false, got {}", path.string(), key, value->dump());
  }
  return value->get<bool>();
}

// Returns the text of a token, which transformers writes as a string or as an object that contains
// it.
std::string token_text(const TokenizerJson& token) {
  if (token.is_string()) return token.get<std::string>();
  return token.is_object() ? token.value("content", "") : "";
}

bool is_special(const std::string& piece) {
  constexpr const char* kSpecial[] = {"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};
  return std::find(std::begin(kSpecial), std::end(kSpecial), piece) != std::end(kSpecial);
}

// Refuses special tokens with which the ids would silently differ from transformers'.
void check_tokens(const fs::path& path, const TokenizerJson& json) {
  for (const char* key : {"unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const TokenizerJson* token = find(json, key);
    if (token != nullptr && !is_special(token_text(*token))) {
      throw DataError("{}: {} is \"{}\"; only BERT's own, such as [SEP], are supported",
                      path.string(), key, token_text(*token));
    }
  }
  const TokenizerJson* added = find(json, "added_tokens_decoder");
  if (added == nullptr || !added->is_object()) return;
  for (const auto& [id, token] : added->items()) {
    if (!is_special(token_text(token))) {
      throw DataError("{}: the added token \"{}\" (id {}) is not supported", path.string(),
                      token_text(token), id);
    }
  }
}

// Reads tokenizer_config.json as transformers writes it.
void read_config(const fs::path& path, WordPieceConfig& config) {
  if (!fs::exists(path)) return;
  const TokenizerJson json = parse_json(path);
  if (!json.is_object()) throw DataError("{}: not the JSON of a tokenizer", path.string());
  check_tokens(path, json);
  config.lowercase = flag(path, json, "do_lower_case", config.lowercase);
  config.chinese_apart = flag(path, json, "tokenize_chinese_chars", config.chinese_apart);
  if (find(json, "strip_accents") != nullptr) {
    config.strip_accents = flag(path, json, "strip_accents", true);
  }
}

std::vector<std::string> pieces_by_id(const fs::path& path, const TokenizerJson& vocabulary) {
  std::vector<std::string> pieces(vocabulary.size());
  for (const auto& [piece, id] : vocabulary.items()) {
    const bool number = id.is_number_unsigned() && id.get<uint64_t>() < pieces.size();
    if (!number || !pieces[id.get<uint64_t>()].empty()) {
      throw DataError("{}: model.vocab: \"{}\" has the id {}, expected each of 0 to {} once",
                      path.string(), piece, id.dump(), pieces.size() - 1);
    }
    pieces[id.get<uint64_t>()] = piece;
  }
  return pieces;
}

// Loads tokenizer.json of the `tokenizers` library, which contains everything.
BertTokenizer load_tokenizer_json(const fs::path& path, std::optional<bool> lowercase) {
  const TokenizerJson json = parse_json(path);
  WordPieceConfig config;
  try {
    const TokenizerJson& model = json.at("model");
    const TokenizerJson& normalizer = json.at("normalizer");
    if (model.value("type", "") != "WordPiece" ||
        normalizer.value("type", "") != "BertNormalizer") {
      throw DataError("{}: a tokenizer of another kind than BERT's WordPiece", path.string());
    }
    config.lowercase = lowercase.value_or(flag(path, normalizer, "lowercase", true));
    config.chinese_apart = flag(path, normalizer, "handle_chinese_chars", true);
    config.strip_accents = flag(path, normalizer, "strip_accents", config.lowercase);
    return BertTokenizer(pieces_by_id(path, model.at("vocab")), config, path.string());
  } catch (const TokenizerJson::exception& error) {
    throw DataError("{}: not the JSON of a tokenizer: {}", path.string(), error.what());
  }
}

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

}  // namespace

BertTokenizer::BertTokenizer(const std::vector<std::string>& pieces, const WordPieceConfig& config,
                             const std::string& name)
    : pieces_(pieces, config, name) {
  Digest hash = Digest::sha256();
  for (const std::string& piece : pieces) {
    hash.update(piece.data(), piece.size());
    hash.update("\n", 1);
  }
  identity_ = {.vocab_size = std::ssize(pieces),
               .vocab_sha256 = hash.hex(),
               .lowercase = config.lowercase,
               .strip_accents = config.strip_accents.value_or(config.lowercase),
               .chinese_apart = config.chinese_apart};
}

BertTokenizer BertTokenizer::load(const fs::path& model, std::optional<bool> lowercase) {
  fs::path file = model;
  if (fs::is_directory(model)) {
    file = model / kVocabularyName;
    if (!fs::exists(file) && fs::exists(model / kTokenizerName)) file = model / kTokenizerName;
    if (!fs::exists(file)) {
      throw DataError("{}: neither vocab.txt nor tokenizer.json in it: not the folder of a BERT",
                      model.string());
    }
  }
  if (file.extension() == ".json") return load_tokenizer_json(file, lowercase);
  WordPieceConfig config;
  if (file.filename() == kVocabularyName) read_config(file.parent_path() / kConfigName, config);
  config.lowercase = lowercase.value_or(config.lowercase);
  return BertTokenizer(WordPiece::read_pieces(file), config, file.string());
}

bool BertTokenizer::encode(std::string_view text, WordPieceInput& out,
                           std::size_t max_length) const {
  return pieces_.encode_input(text, out, max_length);
}

bool BertTokenizer::encode(std::string_view text, std::string_view pair, WordPieceInput& out,
                           std::size_t max_length) const {
  return pieces_.encode_input(text, pair, out, max_length);
}

std::vector<fs::path> BertTokenizer::save(const fs::path& folder) const {
  std::string vocabulary;
  for (int32_t id = 0; id < pieces_.vocab_size(); ++id) vocabulary += pieces_.piece(id) + "\n";
  write_file(folder / kVocabularyName, vocabulary);
  const nlohmann::ordered_json config{{"tokenizer_class", "BertTokenizer"},
                                      {"do_lower_case", identity_.lowercase},
                                      {"strip_accents", identity_.strip_accents},
                                      {"tokenize_chinese_chars", identity_.chinese_apart},
                                      {"unk_token", "[UNK]"},
                                      {"sep_token", "[SEP]"},
                                      {"pad_token", "[PAD]"},
                                      {"cls_token", "[CLS]"},
                                      {"mask_token", "[MASK]"}};
  write_file(folder / kConfigName, config.dump(2) + "\n");
  return {folder / kVocabularyName, folder / kConfigName};
}

void check_same_tokenizer(const TokenizerIdentity& of_data, const fs::path& data,
                          const TokenizerIdentity& of_model, const std::string& model) {
  if (of_data == of_model) return;
  std::vector<std::string> differences;
  auto compare = [&](const char* what, const std::string& there, const std::string& here) {
    if (there != here)
      differences.push_back(fmt::format("{}: {} there, {} here", what, there, here));
  };
  compare("pieces", with_commas(of_model.vocab_size), with_commas(of_data.vocab_size));
  if (differences.empty()) {
    compare("vocabulary", of_model.vocab_sha256.substr(0, 12), of_data.vocab_sha256.substr(0, 12));
  }
  compare("lower-cased", yes_or_no(of_model.lowercase), yes_or_no(of_data.lowercase));
  compare("accents stripped", yes_or_no(of_model.strip_accents), yes_or_no(of_data.strip_accents));
  compare("Chinese characters apart", yes_or_no(of_model.chinese_apart),
          yes_or_no(of_data.chinese_apart));
  DataError error("{}: made with another tokenizer than that of {}", data.string(), model);
  error.set_cause(join(differences, ", "));
  error.set_advice("lockstep prepare labelled ... --vocab " + model);
  throw error;
}

void check_vocabulary_fits(const TokenizerIdentity& tokenizer, const std::string& name,
                           int64_t embedding_rows) {
  if (tokenizer.vocab_size <= embedding_rows) return;
  throw DataError("{}: a vocabulary of {} pieces, but the embedding has {} rows", name,
                  with_commas(tokenizer.vocab_size), with_commas(embedding_rows));
}

}  // namespace lockstep
