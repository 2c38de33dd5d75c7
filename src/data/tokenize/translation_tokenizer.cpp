#include "data/tokenize/translation_tokenizer.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::string_view kSpaceOfPieces = "\xE2\x96\x81";  // U+2581, a space inside a piece

std::string with_spaces(std::string text) {
  for (std::size_t at = 0; (at = text.find(kSpaceOfPieces, at)) != std::string::npos;) {
    text.replace(at, kSpaceOfPieces.size(), " ");
  }
  return text;
}

void append_ids(const Subword& model, const PieceTable& table, int32_t unknown,
                std::string_view line, std::vector<int32_t>& out) {
  for (const std::string& piece : model.encode_to_pieces(line)) {
    const auto at = table.ids.find(piece);
    out.push_back(at == table.ids.end() ? unknown : at->second);
  }
}

}  // namespace

TranslationTokenizer::TranslationTokenizer(Subword own)
    : source_(std::make_shared<const Subword>(std::move(own))), target_(source_) {
  published_.kind = VocabularyKind::kOwn;
  published_.special = {source_->pad_id(), source_->eos_id(), source_->bos_id(), source_->unk_id()};
  published_.files = {{"subword.model", source_->serialized()}};
}

TranslationTokenizer::TranslationTokenizer(PublishedVocabulary published)
    : published_(std::move(published)),
      source_(std::make_shared<const Subword>(
          Subword::from_bytes(published_.source_model, "the source's SentencePiece model"))),
      target_(published_.target_model == published_.source_model
                  ? source_
                  : std::make_shared<const Subword>(Subword::from_bytes(
                        published_.target_model, "the target's SentencePiece model"))) {
  const std::vector<std::string>& pieces = published_.target().pieces;
  silent_.resize(pieces.size());
  for (std::size_t id = 0; id < pieces.size(); ++id) silent_[id] = pieces[id].empty();
  auto hush = [&](int32_t id) {
    if (id >= 0 && id < std::ssize(silent_)) silent_[static_cast<std::size_t>(id)] = true;
  };
  const SpecialPieces& s = published_.special;
  for (int32_t id : {s.pad, s.eos, s.unk}) hush(id);
  if (kind() == VocabularyKind::kMarian) return;  // its languages stand in sources only
  hush(s.bos);
  hush(published_.target().ids.contains("<mask>") ? published_.target().ids.at("<mask>") : -1);
  for (const auto& [language, id] : published_.languages) hush(id);
}

std::vector<int32_t> TranslationTokenizer::encode_source(std::string_view line) const {
  return encode(*source_, published_.source, line);
}

std::vector<int32_t> TranslationTokenizer::encode_target(std::string_view line) const {
  return encode(*target_, published_.target(), line);
}

// As MarianTokenizer, which looks for the token of a language on either side.
std::vector<int32_t> TranslationTokenizer::encode(const Subword& model, const PieceTable& table,
                                                  std::string_view line) const {
  if (is_own()) return model.encode(line);
  std::vector<int32_t> out;
  const std::size_t end = line.find("<<");
  if (kind() == VocabularyKind::kMarian && line.starts_with(">>") && end != line.npos) {
    const auto at = table.ids.find(std::string(line.substr(0, end + 2)));
    out.push_back(at == table.ids.end() ? special().unk : at->second);
    line.remove_prefix(end + 2);
  }
  append_ids(model, table, special().unk, line, out);
  return out;
}

bool TranslationTokenizer::is_silent(int32_t id) const {
  return id < 0 || id >= std::ssize(silent_) || silent_[static_cast<std::size_t>(id)];
}

std::string TranslationTokenizer::decode(std::span<const int32_t> ids) const {
  if (is_own()) return target_->decode(ids);
  std::vector<std::string> pieces;
  for (int32_t id : ids) {
    if (!is_silent(id)) pieces.push_back(piece(id));
  }
  const std::string text = kind() == VocabularyKind::kNllb ? with_spaces(join(pieces, ""))
                           : kind() == VocabularyKind::kMarian
                               ? with_spaces(target_->decode_pieces(pieces))
                               : target_->decode_pieces(pieces);
  return std::string(trim(text));
}

int32_t TranslationTokenizer::vocab_size() const {
  return is_own() ? target_->vocab_size() : static_cast<int32_t>(published_.target().pieces.size());
}

int32_t TranslationTokenizer::source_vocab_size() const {
  return is_own() ? source_->vocab_size() : static_cast<int32_t>(published_.source.pieces.size());
}

bool TranslationTokenizer::has_two_vocabularies() const {
  return published_.own_target.has_value() &&
         published_.own_target->pieces != published_.source.pieces;
}

namespace {

const std::string& piece_in(const std::vector<std::string>& pieces, int32_t id) {
  static const std::string none;
  return id < std::ssize(pieces) ? pieces[static_cast<std::size_t>(id)] : none;
}

}  // namespace

const std::string& TranslationTokenizer::piece(int32_t id) const {
  return is_own() ? target_->piece(id) : piece_in(published_.target().pieces, id);
}

const std::string& TranslationTokenizer::source_piece(int32_t id) const {
  return is_own() ? source_->piece(id) : piece_in(published_.source.pieces, id);
}

std::optional<int32_t> TranslationTokenizer::language_id(const std::string& key,
                                                         const std::string& language) const {
  if (!has_languages()) return std::nullopt;
  const auto at = published_.languages.find(language);
  if (at != published_.languages.end()) return at->second;
  std::vector<std::string> names;
  for (const auto& [name, id] : published_.languages) names.push_back(name);
  const std::string near = did_you_mean(language, names);
  constexpr std::size_t kShown = 12;
  const std::size_t count = names.size();
  if (count > kShown) names.resize(kShown);
  throw ConfigError("{} = \"{}\": no language of this vocabulary{} ({}{})", key, language, near,
                    join(names, ", "),
                    count > kShown ? fmt::format(" and {} more", count - kShown) : "");
}

}  // namespace lockstep
