// The vocabulary of a translation model: lines of two languages to ids, and ids to text. It is one
// that `lockstep prepare` learned (one SentencePiece model whose ids count), or that of a published
// model, in the files of transformers (published_vocabulary.h). Ids and texts are those that
// transformers 4.57 gives, except that special tokens written out in a text ("</s>") are text here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "data/tokenize/subword.h"

namespace lockstep {

// kOwn: ids are those of the SentencePiece model. kMarian: two SentencePiece models, ids in
// vocab.json. kM2m100: one model, ids in vocab.json, then tokens of languages. kNllb: one model,
// whose ids are shifted by one, then tokens of languages.
enum class VocabularyKind { kOwn, kMarian, kM2m100, kNllb };

// Pieces and ids of one side.
struct PieceTable {
  std::unordered_map<std::string, int32_t> ids;
  std::vector<std::string> pieces;  // by id; empty where an id has none
};

// The special tokens; -1 where there is none.
struct SpecialPieces {
  int32_t pad = -1, eos = -1, bos = -1, unk = -1;
};

// What a folder of a published model says about its vocabulary.
struct PublishedVocabulary {
  VocabularyKind kind = VocabularyKind::kMarian;
  std::string source_model, target_model;  // the SentencePiece models; one may serve both sides
  PieceTable source;
  std::optional<PieceTable> own_target;  // where translations have other ids than sources
  SpecialPieces special;
  std::map<std::string, int32_t> languages;      // code -> id: "de", "deu_Latn"
  std::string source_language, target_language;  // as tokenizer_config.json says; may be empty
  std::vector<std::pair<std::string, std::string>> files;  // name and contents of what was read

  const PieceTable& target() const { return own_target ? *own_target : source; }
};

// Immutable after construction, hence thread-safe.
class TranslationTokenizer {
 public:
  // Reads a prepared corpus, a run, a model that lockstep exported, or a folder with the tokenizer
  // of a published model. Throws DataError that names what is missing or wrong.
  static TranslationTokenizer load(const fs::path& folder);
  // Whether the folder has the vocabulary of a published model, not one that lockstep learned.
  static bool is_published(const fs::path& folder);
  explicit TranslationTokenizer(Subword own);
  explicit TranslationTokenizer(PublishedVocabulary published);

  VocabularyKind kind() const { return published_.kind; }
  bool is_own() const { return kind() == VocabularyKind::kOwn; }

  // Return the ids of a sentence without special ones. A line of a Marian may begin with the token
  // of its target language, ">>deu<<".
  std::vector<int32_t> encode_source(std::string_view line) const;
  std::vector<int32_t> encode_target(std::string_view line) const;
  // Returns the text of a translation; special tokens, languages and ids without a piece give none.
  std::string decode(std::span<const int32_t> ids) const;

  int32_t vocab_size() const;         // ids of translations are below
  int32_t source_vocab_size() const;  // ids of sources are below
  bool has_two_vocabularies() const;
  // Returns the piece of a translation's id; "" where it has none.
  const std::string& piece(int32_t id) const;
  const std::string& source_piece(int32_t id) const;
  const SpecialPieces& special() const { return published_.special; }
  // What a published vocabulary consists of; of our own, its special pieces alone.
  const PublishedVocabulary& published() const { return published_; }

  // The token that stands for a language; nothing where the vocabulary has no languages. Throws
  // ConfigError, naming `key` and languages that there are, for an unknown one.
  std::optional<int32_t> language_id(const std::string& key, const std::string& language) const;
  bool has_languages() const { return !published_.languages.empty(); }
  const std::string& source_language() const { return published_.source_language; }
  const std::string& target_language() const { return published_.target_language; }

  // Equal for vocabularies that give equal ids; of our own the SHA-256 of the model file.
  std::string identity() const;
  // The model of the source's side; of our own, the whole vocabulary.
  const Subword& subword() const { return *source_; }
  // Name and contents of the files that load() needs, for a corpus, a run or an export.
  const std::vector<std::pair<std::string, std::string>>& files() const { return published_.files; }

 private:
  std::vector<int32_t> encode(const Subword& model, const PieceTable& table,
                              std::string_view line) const;
  bool is_silent(int32_t id) const;

  PublishedVocabulary published_;  // of our own only the special pieces and files
  std::shared_ptr<const Subword> source_, target_;
  std::vector<bool> silent_;  // ids that give no text
};

}  // namespace lockstep
