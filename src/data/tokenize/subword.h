// Subword units: SentencePiece models that both languages share, and how to learn one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/tokenize/word_table.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace lockstep {

struct SubwordConfig {
  int32_t vocab_size = 8000;      // number of pieces, including the four special ones
  double character_coverage = 1;  // share of the characters that get a piece of their own
  // The number of distinct words to learn from, the most frequent ones: about 0.3 kB of memory
  // each. A rarer word counts only if it has a character that no word before it has.
  int64_t most_words = 1'500'000;
};

// Returns the next sentence, or false at the end. The view is valid until the next call.
using SentenceSource = std::function<bool(std::string_view& sentence)>;

// Learns byte-pair encoding (bpe_learner.h) with SentencePiece's normalization and the special
// pieces <pad> 0, </s> 1, <s> 2, <unk> 3, like OpenSeq2Seq. Returns the serialized model, the
// content of a .model file. Throws ConfigError when the text is too small for the vocabulary (with
// the largest possible size) or the vocabulary too small for the alphabet, and DataError when there
// is no sentence. Only word counts matter, so words are counted first, whatever the size of the
// text.
std::string learn_subwords(const SubwordConfig& config, const SentenceSource& next);
std::string learn_subwords(const SubwordConfig& config, const WordCounts& counts);

// The name of the model file in exported folders (docs/export.md).
inline constexpr const char* kExportedSubword = "source.spm";

// A loaded model. Several threads may use it.
class Subword {
 public:
  static Subword load(const fs::path& path);  // throws DataError
  static Subword from_bytes(std::string_view model, const std::string& name = "subword model");
  ~Subword();
  Subword(Subword&&) noexcept;
  Subword& operator=(Subword&&) noexcept;

  // Returns the ids of a sentence without start and end symbols. Any text can be encoded:
  // characters without a piece become unk_id().
  std::vector<int32_t> encode(std::string_view line) const;
  std::vector<std::string> encode_to_pieces(std::string_view line) const;
  // Returns the text of ids; special pieces give no text. REQUIRES: every id is in [0,
  // vocab_size()).
  std::string decode(std::span<const int32_t> ids) const;
  std::string decode_pieces(const std::vector<std::string>& pieces) const;

  int32_t vocab_size() const;
  const std::string& piece(int32_t id) const;
  float score(int32_t id) const;
  int32_t pad_id() const;  // these four are -1 if the model lacks the piece
  int32_t bos_id() const;
  int32_t eos_id() const;
  int32_t unk_id() const;
  std::string sha256() const;  // of the model file

  // Returns the content of the .model file.
  std::string serialized() const;

  // Returns the text of the .vocab file: one line "piece TAB score" per id.
  std::string vocabulary_text() const;

 private:
  Subword();

  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  std::string model_;  // the content of the model file
};

}  // namespace lockstep
