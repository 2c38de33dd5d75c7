#include "edge/edge_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "edge/edge_file.h"

namespace lockstep {
namespace {

constexpr std::array<std::pair<std::string_view, VocabularyKind>, 4> kKinds = {
    {{"own", VocabularyKind::kOwn},
     {"marian", VocabularyKind::kMarian},
     {"m2m100", VocabularyKind::kM2m100},
     {"nllb", VocabularyKind::kNllb}}};

std::string lines_of(const PieceTable& table) {
  std::string out;
  for (const std::string& piece : table.pieces) {
    if (piece.find('\n') != std::string::npos) {
      throw DataError("--format edge: a piece of the vocabulary holds a line end: \"{}\"", piece);
    }
    out += piece + '\n';
  }
  return out;
}

// The first line has four ids and the numbers of lines that follow: the pieces of sources by their
// ids, those of translations where they differ, languages.
std::string pieces_text(const TranslationTokenizer& vocabulary) {
  const PublishedVocabulary& v = vocabulary.published();
  const bool two = vocabulary.has_two_vocabularies();
  const SpecialPieces& s = v.special;
  std::string out =
      fmt::format("{} {} {} {} {} {} {}\n", s.pad, s.eos, s.bos, s.unk, v.source.pieces.size(),
                  two ? v.target().pieces.size() : 0, v.languages.size());
  out += lines_of(v.source);
  if (two) out += lines_of(v.target());
  for (const auto& [language, id] : v.languages) out += fmt::format("{} {}\n", id, language);
  return out;
}

// Takes lines and numbers from a text.
class Reader {
 public:
  Reader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::string_view line() {
    const std::size_t end = text_.find('\n');
    if (end == std::string_view::npos) throw DataError("{}: cut short", path_);
    const std::string_view out = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    ++number_;
    return out;
  }
  // Removes a number and the space behind it from the front of `line`.
  int32_t number(std::string_view& line, int32_t least) const {
    int32_t out = 0;
    const char* end = line.data() + line.size();
    const auto [at, error] = std::from_chars(line.data(), end, out);
    if (error != std::errc() || out < least || (at != end && *at != ' ')) {
      throw DataError("{}:{}: damaged: expected a number", path_, number_);
    }
    line.remove_prefix(std::min<std::size_t>(line.size(), at - line.data() + 1));
    return out;
  }
  PieceTable table(int32_t count) {
    PieceTable out;
    out.ids.reserve(static_cast<std::size_t>(std::min<int64_t>(count, std::ssize(text_))));
    for (int32_t id = 0; id < count; ++id) {
      const std::string& piece = out.pieces.emplace_back(line());
      if (!piece.empty()) out.ids.emplace(piece, id);
    }
    return out;
  }
  bool done() const { return text_.empty(); }

 private:
  std::string_view text_;
  const std::string& path_;
  int64_t number_ = 0;
};

}  // namespace

std::string_view vocabulary_word(VocabularyKind kind) {
  std::string_view out;
  for (const auto& [word, of_word] : kKinds) {
    if (of_word == kind) out = word;
  }
  return out;
}

std::vector<EdgeVocabularyFile> vocabulary_files(const TranslationTokenizer& vocabulary) {
  std::vector<EdgeVocabularyFile> out = {
      {"subword", kEdgeSubword, vocabulary.subword().serialized()},
      {"target", kEdgeTarget, ""},
      {"pieces", kEdgePieces, ""}};
  if (vocabulary.is_own()) return out;
  const PublishedVocabulary& v = vocabulary.published();
  if (v.target_model != v.source_model) out[1].contents = v.target_model;
  out[2].contents = pieces_text(vocabulary);
  return out;
}

PublishedVocabulary read_edge_pieces(std::string_view text, const std::string& path,
                                     std::string_view kind) {
  PublishedVocabulary out;
  for (const auto& [word, of_word] : kKinds) {
    if (word == kind) out.kind = of_word;
  }
  Reader reader(text, path);
  std::string_view first = reader.line();
  SpecialPieces& special = out.special;
  for (int32_t* id : {&special.pad, &special.eos, &special.bos}) *id = reader.number(first, -1);
  special.unk = reader.number(first, 0);
  const int32_t sources = reader.number(first, 1);
  const int32_t targets = reader.number(first, 0), languages = reader.number(first, 0);
  const int32_t fewest = targets == 0 ? sources : std::min(sources, targets);
  for (int32_t id : {special.pad, special.eos, special.bos, special.unk}) {
    if (id >= fewest) throw DataError("{}: damaged: an id of {}, of {} pieces", path, id, fewest);
  }
  out.source = reader.table(sources);
  if (targets > 0) out.own_target = reader.table(targets);
  for (int32_t i = 0; i < languages; ++i) {
    std::string_view line = reader.line();
    const int32_t id = reader.number(line, 0);
    out.languages.emplace(line, id);
  }
  if (!reader.done()) throw DataError("{}: damaged: lines behind its last one", path);
  return out;
}

}  // namespace lockstep
