// Translates lines of text to lines of ids or pieces and back, with a SentencePiece model or the
// vocabulary of a BERT. `lockstep tokenize` does this with each line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace lockstep {

struct CodecOptions {
  bool pieces = false;  // lines of pieces instead of ids
  bool target = false;  // encode lines as targets: published translation models only
  // SentencePiece only.
  bool start = false, end = false;  // add <s>, add </s>
  // WordPiece only.
  bool pairs = false;      // two texts per line, separated by a tab
  bool special = true;     // add [CLS] and [SEP]
  bool type_ids = false;   // append type ids after a tab
  bool cased = false;      // neither lower-case nor strip accents
  int64_t max_length = 0;  // number of ids with special ones; 0: no limit
};

// A line and its origin, for error messages.
struct TextLine {
  std::string_view text;
  int64_t number = 1;
  std::string_view source = "standard input";
};

// Immutable after construction, hence thread-safe.
class TextCodec {
 public:
  virtual ~TextCodec() = default;

  // Both append the translation of a line without a line end. They throw DataError with the place
  // of text that cannot be translated.
  virtual void encode(const TextLine& line, std::string& out) const = 0;
  virtual void decode(const TextLine& line, std::string& out) const = 0;
};

// `model` is a folder with the vocabulary of a published translation model, a SentencePiece .model,
// the vocab.txt or tokenizer.json of a BERT, or a folder with subword.model (a prepared corpus, a
// run), source.spm (an exported model), vocab.txt or tokenizer.json. A tokenizer_config.json beside
// vocab.txt says whether the model is cased. Throws DataError for anything else and ConfigError for
// options that this kind of model does not have.
std::unique_ptr<TextCodec> load_text_codec(const fs::path& model, const CodecOptions& options);

}  // namespace lockstep
