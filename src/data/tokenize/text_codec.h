// Lines of text to lines of ids or pieces and back, with a SentencePiece model or the vocabulary of
// a BERT: what `lockstep tokenize` does with each line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace lockstep {

struct CodecOptions {
  bool pieces = false;  // lines of pieces instead of ids
  // SentencePiece only.
  bool start = false, end = false;  // with <s>, with </s>
  // WordPiece only.
  bool pairs = false;      // two texts a line, between them a tab
  bool special = true;     // with [CLS] and [SEP]
  bool type_ids = false;   // behind the ids, after a tab
  bool cased = false;      // neither lower-cased nor stripped of accents
  int64_t max_length = 0;  // ids with the special ones; 0: no limit
};

// A line and where it is from, for errors.
struct TextLine {
  std::string_view text;
  int64_t number = 1;
  std::string_view source = "standard input";
};

// Immutable after construction, so any thread may use it.
class TextCodec {
 public:
  virtual ~TextCodec() = default;

  // Append the translation of a line, without a line end. Throw DataError with the place of what
  // cannot be translated.
  virtual void encode(const TextLine& line, std::string& out) const = 0;
  virtual void decode(const TextLine& line, std::string& out) const = 0;
};

// `model`: a SentencePiece .model, the vocab.txt of a BERT, or a folder with subword.model (a
// prepared corpus, a run), source.spm (an exported model) or vocab.txt; beside the last
// tokenizer_config.json says whether it is cased.
// Throws DataError for anything else, ConfigError for options that the kind of model lacks.
std::unique_ptr<TextCodec> load_text_codec(const fs::path& model, const CodecOptions& options);

}  // namespace lockstep
