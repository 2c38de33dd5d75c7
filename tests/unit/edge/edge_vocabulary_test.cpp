#include "edge/edge_vocabulary.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace lockstep {
namespace {

const std::vector<std::string> kLines = {"one two three", "three four five", "two one five four"};

std::string learned(int32_t pieces) {
  std::size_t next = 0;
  return learn_subwords({.vocab_size = pieces}, [&](std::string_view& line) {
    if (next == kLines.size()) return false;
    line = kLines[next++];
    return true;
  });
}

PieceTable table(const std::vector<std::string>& pieces) {
  PieceTable out;
  out.pieces = pieces;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (!pieces[id].empty()) out.ids[pieces[id]] = static_cast<int32_t>(id);
  }
  return out;
}

// </s>, <unk>, an id without a piece, the pieces of `model`, <pad>.
PieceTable marian_table(const std::string& model) {
  std::vector<std::string> pieces = {"</s>", "<unk>", ""};
  const Subword subword = Subword::from_bytes(model);
  for (int32_t id = 4; id < subword.vocab_size(); ++id) pieces.push_back(subword.piece(id));
  pieces.emplace_back("<pad>");
  return table(pieces);
}

PublishedVocabulary marian(int32_t target_pieces) {
  PublishedVocabulary out;
  out.kind = VocabularyKind::kMarian;
  out.source_model = learned(24);
  out.target_model = learned(target_pieces);
  out.source = marian_table(out.source_model);
  if (target_pieces != 24) out.own_target = marian_table(out.target_model);
  out.special = {.pad = static_cast<int32_t>(out.target().pieces.size()) - 1, .eos = 0, .unk = 1};
  out.languages = {{">>deu<<", 3}, {">>two words<<", 4}};
  return out;
}

std::string pieces_of(const TranslationTokenizer& vocabulary) {
  return vocabulary_files(vocabulary).at(2).contents;
}

PublishedVocabulary read(const std::string& text) {
  return read_edge_pieces(text, "vocabulary.pieces", "marian");
}

TEST(EdgeVocabulary, KeepsBothTables) {
  for (const int32_t target_pieces : {20, 24}) {
    const TranslationTokenizer before(marian(target_pieces));
    ASSERT_EQ(before.has_two_vocabularies(), target_pieces == 20);
    const std::vector<EdgeVocabularyFile> files = vocabulary_files(before);
    EXPECT_EQ(files.at(1).contents.empty(), target_pieces == 24) << "one model serves both sides";
    PublishedVocabulary after = read(files.at(2).contents);
    EXPECT_EQ(after.source.ids, before.published().source.ids);
    EXPECT_EQ(after.target().pieces, before.published().target().pieces);
    EXPECT_EQ(after.languages, before.published().languages);
    EXPECT_EQ(after.special.pad, before.special().pad);
    EXPECT_EQ(after.special.bos, -1);
    after.source_model = before.published().source_model;
    after.target_model = before.published().target_model;
    EXPECT_EQ(TranslationTokenizer(after).identity(), before.identity());
  }
}

TEST(EdgeVocabulary, IsOneFileOfOurOwn) {
  const TranslationTokenizer own(Subword::from_bytes(learned(24)));
  const std::vector<EdgeVocabularyFile> files = vocabulary_files(own);
  EXPECT_EQ(files.at(0).contents, own.subword().serialized());
  EXPECT_EQ(files.at(1).contents + files.at(2).contents, "");
}

TEST(EdgeVocabulary, RefusesPiecesThatLinesCannotHold) {
  PublishedVocabulary odd = marian(24);
  odd.source.pieces[2] = "a\nb";
  EXPECT_ERROR(vocabulary_files(TranslationTokenizer(odd)), DataError, "holds a line end");
}

TEST(EdgeVocabulary, NamesTheLineThatIsDamaged) {
  const std::string text = pieces_of(TranslationTokenizer(marian(24)));
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_ERROR(read(text.substr(0, bytes)), DataError, "vocabulary.pieces: cut short");
  }
  EXPECT_ERROR(read(text + "1 more\n"), DataError, "lines behind its last one");
  EXPECT_ERROR(read("7 0 -1 x 1 0 0\na\n"), DataError, "vocabulary.pieces:1: damaged");
  EXPECT_ERROR(read("0 0 -1 -1 1 0 0\na\n"), DataError, "vocabulary.pieces:1: damaged");
  EXPECT_ERROR(read("0 0 -1 1 1 0 0\na\n"), DataError, "an id of 1, of 1 pieces");
  EXPECT_ERROR(read("0 0 -1 1 2 1 0\na\nb\nc\n"), DataError, "an id of 1, of 1 pieces");
  EXPECT_ERROR(read("0 0 -1 0 2147483647 0 0\na\n"), DataError, "cut short");
  EXPECT_ERROR(read("0 0 -1 0 1 0 1\na\nde 1\n"), DataError, "vocabulary.pieces:3: damaged");
}

}  // namespace
}  // namespace lockstep
