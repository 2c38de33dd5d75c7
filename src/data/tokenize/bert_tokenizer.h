// The tokenizer of a BERT: a vocab.txt and what tokenizer_config.json beside it says. Gives the ids
// and type ids of transformers' BertTokenizerFast (data/tokenize/wordpiece.h does the work), and
// knows what must be equal where one's ids meet another's network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/tokenize/wordpiece.h"

namespace lockstep {

// What decides the ids of a text. Kept in the manifest of prepared texts.
struct TokenizerIdentity {
  int64_t vocab_size = 0;
  std::string vocab_sha256;  // of the pieces, each with a LF: the same for a file with CR LF
  bool lowercase = true, strip_accents = true, chinese_apart = true;

  bool operator==(const TokenizerIdentity&) const = default;
};

// Immutable after construction, so any thread may use it.
class BertTokenizer {
 public:
  // `model`: a vocab.txt or tokenizer.json, or a folder with either (vocab.txt first). Beside a
  // vocab.txt tokenizer_config.json, if any, says do_lower_case, strip_accents and
  // tokenize_chinese_chars, with transformers' defaults; `lowercase` counts more than that. Throws
  // DataError for what is missing, not UTF-8, no vocabulary of BERT, or has tokens that this lacks.
  static BertTokenizer load(const fs::path& model, std::optional<bool> lowercase = std::nullopt);
  BertTokenizer(const std::vector<std::string>& pieces, const WordPieceConfig& config,
                const std::string& name = "vocabulary");

  // [CLS] text [SEP], or [CLS] text [SEP] pair [SEP] when there is a pair (it may be empty), cut to
  // `max_length` ids as truncation="longest_first" does: clears `out`. REQUIRES valid UTF-8 and
  // max_length > 3. True: it was cut.
  bool encode(std::string_view text, WordPieceInput& out, std::size_t max_length) const;
  bool encode(std::string_view text, std::string_view pair, WordPieceInput& out,
              std::size_t max_length) const;

  const WordPiece& pieces() const { return pieces_; }
  const TokenizerIdentity& identity() const { return identity_; }
  // Writes vocab.txt and tokenizer_config.json, which this and transformers load; their paths.
  std::vector<fs::path> save(const fs::path& folder) const;

 private:
  WordPiece pieces_;
  TokenizerIdentity identity_;
};

// Throws DataError that says in what they differ: ids of prepared texts would mean other words to
// the model. `model` names where `of_model` is from.
void check_same_tokenizer(const TokenizerIdentity& of_data, const fs::path& data,
                          const TokenizerIdentity& of_model, const std::string& model);

// Throws DataError when the vocabulary has more pieces than the embedding has rows; the other way
// round is usual (rows padded to a multiple).
void check_vocabulary_fits(const TokenizerIdentity& tokenizer, const std::string& name,
                           int64_t embedding_rows);

}  // namespace lockstep
