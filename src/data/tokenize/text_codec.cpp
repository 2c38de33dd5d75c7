#include "data/tokenize/text_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/tokenize/bert_tokenizer.h"
#include "data/tokenize/subword.h"
#include "data/tokenize/translation_tokenizer.h"

namespace lockstep {

namespace {

void append_number(int32_t number, std::string& out) {
  char digits[12];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end);
}

template <typename Write>
void append_joined(std::span<const int32_t> ids, std::string& out, const Write& write) {
  bool first = true;
  for (int32_t id : ids) {
    if (!first) out += ' ';
    first = false;
    write(id);
  }
}

void append_ids(std::span<const int32_t> ids, std::string& out) {
  append_joined(ids, out, [&](int32_t id) { append_number(id, out); });
}

[[noreturn]] void fail_at(const TextLine& line, std::size_t at, const std::string& what) {
  throw DataError("{}:{}:{}: {}", line.source, line.number,
                  to_code_points(line.text.substr(0, at)).size() + 1, what);
}

void check_utf8(const TextLine& line) {
  std::optional<std::size_t> at = invalid_utf8_at(line.text);
  if (!at) return;
  fail_at(
      line, *at,
      fmt::format("byte 0x{:02x} is not valid UTF-8", static_cast<unsigned char>(line.text[*at])));
}

std::vector<int32_t> read_ids(const TextLine& line, int32_t vocab_size) {
  std::vector<int32_t> ids;
  for (std::string_view word : split_words(line.text)) {
    int32_t id = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    bool number = error == std::errc() && end == word.data() + word.size();
    if (!number || id < 0 || id >= vocab_size) {
      fail_at(line, static_cast<std::size_t>(word.data() - line.text.data()),
              fmt::format("expected an id from 0 to {}, got \"{}\"", vocab_size - 1, word));
    }
    ids.push_back(id);
  }
  return ids;
}

class SubwordCodec : public TextCodec {
 public:
  SubwordCodec(Subword subword, const CodecOptions& options)
      : subword_(std::move(subword)), options_(options) {
    if (options.pairs || options.type_ids || options.cased || !options.special ||
        options.max_length != 0) {
      throw ConfigError(
          "--pairs, --type-ids, --cased, --no-special and --max-length are for BERT's "
          "vocabularies, "
          "and this is a SentencePiece model");
    }
    if (options.start && subword_.bos_id() < 0) throw ConfigError("--bos: the model has no <s>");
    if (options.end && subword_.eos_id() < 0) throw ConfigError("--eos: the model has no </s>");
  }

  void encode(const TextLine& line, std::string& out) const override {
    check_utf8(line);
    if (options_.pieces) {
      std::vector<std::string> pieces = subword_.encode_to_pieces(line.text);
      if (options_.start) pieces.insert(pieces.begin(), subword_.piece(subword_.bos_id()));
      if (options_.end) pieces.push_back(subword_.piece(subword_.eos_id()));
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (i > 0) out += ' ';
        out += pieces[i];
      }
      return;
    }
    std::vector<int32_t> ids = subword_.encode(line.text);
    if (options_.start) ids.insert(ids.begin(), subword_.bos_id());
    if (options_.end) ids.push_back(subword_.eos_id());
    append_ids(ids, out);
  }

  void decode(const TextLine& line, std::string& out) const override {
    check_utf8(line);
    if (options_.pieces) {
      std::vector<std::string> pieces;
      for (std::string_view piece : split_words(line.text)) pieces.emplace_back(piece);
      out += subword_.decode_pieces(pieces);
    } else {
      out += subword_.decode(read_ids(line, subword_.vocab_size()));
    }
  }

 private:
  Subword subword_;
  CodecOptions options_;
};

class WordPieceCodec : public TextCodec {
 public:
  WordPieceCodec(WordPiece model, const CodecOptions& options)
      : model_(std::move(model)), options_(options) {
    if (options.start || options.end) {
      throw ConfigError(
          "--bos and --eos are for SentencePiece models, and this is a vocabulary of "
          "BERT, which has [CLS] and [SEP]");
    }
    if (!options.special && (options.pairs || options.type_ids || options.max_length != 0)) {
      throw ConfigError(
          "--no-special: without [CLS] and [SEP] there are no --pairs, --type-ids and "
          "--max-length");
    }
    if (options.max_length != 0 && options.max_length < 4) {
      throw ConfigError("--max-length {}: expected 4 or more, as [CLS] and [SEP] count",
                        options.max_length);
    }
  }

  void encode(const TextLine& line, std::string& out) const override {
    check_utf8(line);
    thread_local WordPieceInput input;  // reuses its memory for each line
    read(line, input);
    if (options_.pieces) {
      append_joined(input.ids, out, [&](int32_t id) { out += model_.piece(id); });
    } else {
      append_ids(input.ids, out);
    }
    if (!options_.type_ids) return;
    out += '\t';
    append_ids(input.type_ids, out);
  }

  void decode(const TextLine& line, std::string& out) const override {
    check_utf8(line);
    if (!options_.pieces) {
      out += model_.decode(read_ids(line, model_.vocab_size()));
      return;
    }
    std::vector<int32_t> ids;
    for (std::string_view piece : split_words(line.text)) {
      std::optional<int32_t> id = model_.find(piece);
      if (!id) {
        fail_at(line, static_cast<std::size_t>(piece.data() - line.text.data()),
                fmt::format("no piece \"{}\" in the vocabulary", piece));
      }
      ids.push_back(*id);
    }
    out += model_.decode(ids);
  }

 private:
  void read(const TextLine& line, WordPieceInput& input) const {
    auto most = options_.max_length == 0 ? SIZE_MAX : static_cast<std::size_t>(options_.max_length);
    if (!options_.special) {
      input.ids.clear();
      model_.encode(line.text, input.ids);
      return;
    }
    if (!options_.pairs) {
      model_.encode_input(line.text, input, most);
      return;
    }
    std::size_t tab = std::min(line.text.find('\t'), line.text.size());
    std::size_t second = line.text.find('\t', tab + 1);
    if (tab == line.text.size() || second != std::string_view::npos) {
      fail_at(line, std::min(second, line.text.size()),
              "expected two texts with one tab between them");
    }
    model_.encode_input(line.text.substr(0, tab), line.text.substr(tab + 1), input, most);
  }

  WordPiece model_;
  CodecOptions options_;
};

// The vocabulary of a published translation model: encodes sources, or targets, decodes targets.
class PublishedCodec : public TextCodec {
 public:
  PublishedCodec(TranslationTokenizer tokenizer, const CodecOptions& options)
      : tokenizer_(std::move(tokenizer)), options_(options) {
    if (options.pairs || options.type_ids || options.cased || !options.special ||
        options.max_length != 0 || options.start) {
      throw ConfigError(
          "--pairs, --type-ids, --cased, --no-special, --max-length and --bos are not for the "
          "vocabulary of a translation model");
    }
  }

  void encode(const TextLine& line, std::string& out) const override {
    check_utf8(line);
    std::vector<int32_t> ids =
        options_.target ? tokenizer_.encode_target(line.text) : tokenizer_.encode_source(line.text);
    if (options_.end) ids.push_back(tokenizer_.special().eos);
    if (!options_.pieces) return append_ids(ids, out);
    append_joined(ids, out, [&](int32_t id) {
      out += options_.target ? tokenizer_.piece(id) : tokenizer_.source_piece(id);
    });
  }

  void decode(const TextLine& line, std::string& out) const override {
    check_utf8(line);
    if (options_.pieces) {
      throw ConfigError("--decode: expects ids for the vocabulary of a translation model (--ids)");
    }
    out += tokenizer_.decode(read_ids(line, tokenizer_.vocab_size()));
  }

 private:
  TranslationTokenizer tokenizer_;
  CodecOptions options_;
};

// Returns the model file of a prepared corpus, a run, an exported model or a BERT.
fs::path model_in(const fs::path& folder) {
  for (const char* name : {"subword.model", kExportedSubword, "vocab.txt", "tokenizer.json"}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  throw DataError(
      "{}: neither subword.model (a prepared corpus, a run) nor source.spm (an exported model) nor "
      "vocab.txt or tokenizer.json (a BERT) in it",
      folder.string());
}

// Tells the formats apart: a SentencePiece model is a binary protocol buffer, a vocabulary has a
// line [UNK].
bool is_vocabulary(std::string_view content) {
  return content.starts_with("[UNK]\n") || content.find("\n[UNK]\n") != std::string_view::npos ||
         content.find("\n[UNK]\r\n") != std::string_view::npos;
}

}  // namespace

std::unique_ptr<TextCodec> load_text_codec(const fs::path& model, const CodecOptions& options) {
  if (fs::is_directory(model) && TranslationTokenizer::is_published(model)) {
    return std::make_unique<PublishedCodec>(TranslationTokenizer::load(model), options);
  }
  if (options.target) throw ConfigError("--target: both sides have one vocabulary here");
  fs::path file = model;
  if (fs::is_directory(model)) file = model_in(model);
  std::string content = read_file(file);
  if (is_vocabulary(content) || file.extension() == ".txt" || file.extension() == ".json") {
    const std::optional<bool> lowercase = options.cased ? std::optional(false) : std::nullopt;
    const fs::path& from = fs::is_directory(model) ? model : file;
    return std::make_unique<WordPieceCodec>(BertTokenizer::load(from, lowercase).pieces(), options);
  }
  return std::make_unique<SubwordCodec>(Subword::from_bytes(content, file.string()), options);
}

}  // namespace lockstep
