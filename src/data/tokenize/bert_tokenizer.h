// The tokenizer of a BERT, made from a vocab.txt and the tokenizer_config.json beside it. It gives
// the ids and type ids of transformers' BertTokenizerFast (data/tokenize/wordpiece.h does the
// work). It also checks that the tokenizers of data and model match.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/tokenize/wordpiece.h"

namespace lockstep {

// Everything that determines the ids of a text. It is stored in the manifest of prepared texts.
struct TokenizerIdentity {
  int64_t vocab_size = 0;
  std::string vocab_sha256;  // of the pieces, each with a LF, whatever the file's line ends
  bool lowercase = true, strip_accents = true, chinese_apart = true;

  bool operator==(const TokenizerIdentity&) const = default;
};

// Immutable after construction, hence thread-safe.
class BertTokenizer {
 public:
  // `model` is a vocab.txt or tokenizer.json, or a folder with either (vocab.txt is preferred). A
  // tokenizer_config.json beside vocab.txt may set do_lower_case, strip_accents and
  // tokenize_chinese_chars, with transformers' defaults; `lowercase` overrides it. Throws DataError
  // for a file that is missing, not UTF-8 or not a vocabulary of BERT, and for special tokens that
  // are not supported.
  static BertTokenizer load(const fs::path& model, std::optional<bool> lowercase = std::nullopt);
  BertTokenizer(const std::vector<std::string>& pieces, const WordPieceConfig& config,
                const std::string& name = "vocabulary");

  // Writes [CLS] text [SEP], or [CLS] text [SEP] pair [SEP] if there is a pair (which may be
  // empty), to `out`, cut to `max_length` ids like truncation="longest_first". Returns true if it
  // was cut. REQUIRES: valid UTF-8 and max_length > 3.
  bool encode(std::string_view text, WordPieceInput& out, std::size_t max_length) const;
  bool encode(std::string_view text, std::string_view pair, WordPieceInput& out,
              std::size_t max_length) const;

  const WordPiece& pieces() const { return pieces_; }
  const TokenizerIdentity& identity() const { return identity_; }
  // Writes vocab.txt and tokenizer_config.json, which this class and transformers can load. Returns
  // their paths.
  std::vector<fs::path> save(const fs::path& folder) const;

 private:
  WordPiece pieces_;
  TokenizerIdentity identity_;
};

// Throws DataError that describes the difference if the identities differ: the ids of prepared
// texts would mean other words to the model. `model` names the origin of `of_model`.
void check_same_tokenizer(const TokenizerIdentity& of_data, const fs::path& data,
                          const TokenizerIdentity& of_model, const std::string& model);

// Throws DataError when the vocabulary has more pieces than the embedding has rows. More rows than
// pieces are usual (padding to a multiple).
void check_vocabulary_fits(const TokenizerIdentity& tokenizer, const std::string& name,
                           int64_t embedding_rows);

}  // namespace lockstep
