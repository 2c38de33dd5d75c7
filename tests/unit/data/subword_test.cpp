#include "data/tokenize/subword.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/expect_error.h"

namespace lockstep {
namespace {

SentenceSource source_of(const std::vector<std::string>& lines) {
  return [&lines, at = std::size_t{0}](std::string_view& sentence) mutable {
    if (at == lines.size()) return false;
    sentence = lines[at++];
    return true;
  };
}

const std::vector<std::string> kLines{
    "the cat sat on the mat",    "the dog sat on the log", "Die Katze saß auf der Matte",
    "Der Hund saß auf dem Holz", "a cat and a dog",        "eine Katze und ein Hund"};

TEST(Subword, LearnsPiecesWithTheSpecialOnesFirst) {
  Subword subword = Subword::from_bytes(learn_subwords({.vocab_size = 60}, source_of(kLines)));
  EXPECT_EQ(subword.vocab_size(), 60);
  EXPECT_EQ(subword.pad_id(), 0);
  EXPECT_EQ(subword.eos_id(), 1);
  EXPECT_EQ(subword.bos_id(), 2);
  EXPECT_EQ(subword.unk_id(), 3);
  EXPECT_EQ(subword.piece(1), "</s>");
  for (const std::string& line : kLines) EXPECT_EQ(subword.decode(subword.encode(line)), line);
  EXPECT_EQ(subword.decode(subword.encode("  the   cat ")), "the cat");
  EXPECT_TRUE(subword.encode("").empty());
  EXPECT_EQ(subword.encode("Ж").back(), subword.unk_id());
  EXPECT_EQ(subword.sha256().size(), 64u);
  EXPECT_EQ(subword.vocabulary_text().substr(0, 8), "<pad>\t0\n");
}

TEST(Subword, LearnsTheSameTwice) {
  EXPECT_EQ(learn_subwords({.vocab_size = 60}, source_of(kLines)),
            learn_subwords({.vocab_size = 60}, source_of(kLines)));
}

TEST(Subword, SaysTheLargestVocabularyOfASmallText) {
  std::string largest;
  try {
    learn_subwords({.vocab_size = 5000}, source_of(kLines));
    FAIL() << "5000 pieces out of 6 lines";
  } catch (const ConfigError& error) {
    EXPECT_NE(error.describe().find("larger than the text allows; at most "), std::string::npos)
        << error.describe();
    std::string text = error.describe();
    largest = text.substr(text.find("at most ") + 8);
  }
  // The size that it names works, and one more does not.
  int32_t size = std::stoi(largest);
  EXPECT_NO_THROW(learn_subwords({.vocab_size = size}, source_of(kLines)));
  EXPECT_THROW(learn_subwords({.vocab_size = size + 1}, source_of(kLines)), ConfigError);
}

TEST(Subword, RefusesAVocabularySmallerThanTheAlphabet) {
  EXPECT_ERROR(learn_subwords({.vocab_size = 10}, source_of(kLines)), ConfigError,
               "smaller than the alphabet");
  EXPECT_ERROR(learn_subwords({.vocab_size = 10}, source_of({})), DataError, "no sentence");
}

TEST(Subword, RefusesAFileThatIsNoModel) {
  TemporaryFolder folder;
  write_file(folder.path() / "bad.model", "no model at all");
  EXPECT_ERROR(Subword::load(folder.path() / "bad.model"), DataError, "not a SentencePiece model");
  write_file(folder.path() / "bad.model", "");
  EXPECT_ERROR(Subword::load(folder.path() / "bad.model"), DataError, "not a SentencePiece model");
  EXPECT_ERROR(Subword::load(folder.path() / "none.model"), DataError, "no such file");
}

// The library throws what is no Error of ours when it builds its trie.
TEST(Subword, RefusesAModelWithAnEmptyPiece) {
  auto piece = [](const std::string& text, char type) {
    std::string out = {'\x0a', static_cast<char>(text.size())};
    out += text + std::string("\x15\0\0\x80\xbf\x18", 6) + type;  // score -1, type
    return std::string{'\x0a', static_cast<char>(out.size())} + out;
  };
  const std::string unknown = piece("<unk>", 2);
  EXPECT_EQ(Subword::from_bytes(unknown + piece("a", 1)).vocab_size(), 2);
  EXPECT_ERROR(Subword::from_bytes(unknown + piece("", 1)), DataError, "not a SentencePiece model");
  // A zero byte, which ends a key of the trie.
  EXPECT_ERROR(Subword::from_bytes(unknown + piece(std::string("\0a", 2), 1)), DataError,
               "not a SentencePiece model");
}

TEST(Subword, EncodesAsTheReferenceLibraryDid) {
  fs::path reference = fs::path(LOCKSTEP_SHARED) / "data/reference/sentencepiece";
  if (!fs::exists(reference)) GTEST_SKIP() << "no reference data in " << reference;
  Subword subword = Subword::load(reference / "test_model.model");
  int lines = 0;
  for_each_line(reference / "expected.jsonl.gz", [&](std::string_view line, int64_t) {
    nlohmann::json row = nlohmann::json::parse(line);
    EXPECT_EQ(subword.encode(row.at("text").get<std::string>()),
              row.at("ids").get<std::vector<int32_t>>());
    EXPECT_EQ(subword.encode_to_pieces(row.at("text").get<std::string>()),
              row.at("pieces").get<std::vector<std::string>>());
    ++lines;
  });
  EXPECT_EQ(lines, 200);
}

}  // namespace
}  // namespace lockstep
