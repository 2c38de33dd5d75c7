#include "data/tokenize/wordpiece.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "support/expect_error.h"
#include "support/python.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

const fs::path kBertVocabulary =
    fs::path(LOCKSTEP_SHARED) / "data/bert/bert-base-uncased-vocab.txt";

const std::vector<std::string> kAffixPieces{"[PAD]", "[UNK]", "[CLS]",  "[SEP]",   "[MASK]",
                                            "un",    "##aff", "##able", "##abled", "dog",
                                            "##s",   ".",     "!",      "'"};

Ids encode(const WordPiece& model, std::string_view text) {
  Ids ids;
  model.encode(text, ids);
  return ids;
}

TEST(WordPiece, TakesTheLongestPieceFromTheLeft) {
  WordPiece model(kAffixPieces, {});
  EXPECT_EQ(encode(model, "unaffable"), (Ids{5, 6, 7}));
  EXPECT_EQ(encode(model, "Unaffabled DOGS!"), (Ids{5, 6, 8, 9, 10, 12}));
  EXPECT_EQ(encode(model, "unaffab dog"), (Ids{1, 9}));  // no piece for the rest: all unknown
  EXPECT_EQ(encode(model, " \t "), Ids{});
  EXPECT_EQ(encode(model, "d\u00F3g do\u0301g d\u00ADog do\x07g"), (Ids{9, 9, 9, 9}));
}

TEST(WordPiece, KnowsSpecialPiecesInTheTextAndLongWords) {
  WordPiece model(kAffixPieces, {});
  EXPECT_EQ(encode(model, "dog[SEP]dog [sep]"), (Ids{9, 3, 9, 1, 1, 1}));
  EXPECT_EQ(encode(model, std::string(101, 'x') + "dog"), (Ids{1}));
}

TEST(WordPiece, KeepsCaseAndAccentsWhenTold) {
  WordPiece model(kAffixPieces, {.lowercase = false});
  EXPECT_EQ(encode(model, "dog Dog d\u00F3g"), (Ids{9, 1, 1}));
}

TEST(WordPiece, CutsTheLongerOfTwoTextsFirst) {
  WordPiece model(kAffixPieces, {});
  WordPieceInput input;
  auto kept = [&](const std::string& first, const std::string& second, std::size_t most) {
    model.encode_input(first, second, input, most);
    EXPECT_EQ(input.ids.size(), input.type_ids.size());
    return std::count(input.ids.begin(), input.ids.end(), 9) * 10 +
           std::count(input.ids.begin(), input.ids.end(), 12);
  };
  EXPECT_EQ(kept("dog dog", "!!!!!!", 9), 24);  // 2 and 4 of 2 and 6
  EXPECT_EQ(kept("dog dog dog dog", "!!!!!!", 9), 33);
  EXPECT_EQ(kept("dog dog dog dog", "!!!!!!", 10), 34);
  EXPECT_EQ(kept("dog dog dog dog dog dog", "!!!!", 10), 43);
  model.encode_input("dog dog dog", input, 4);
  EXPECT_EQ(input.ids, (Ids{2, 9, 9, 3}));
}

TEST(WordPiece, DecodesWithoutBlanksBeforePunctuation) {
  WordPiece model(kAffixPieces, {});
  EXPECT_EQ(model.decode(Ids{2, 9, 10, 11, 9, 12, 3, 0, 0}), "dogs. dog!");
  EXPECT_EQ(model.decode(Ids{10, 9, 13, 10}), "##s dog 's");
}

TEST(WordPiece, NeedsAVocabularyOfBert) {
  TemporaryFolder folder;
  write_file(folder.path() / "vocab.txt", "[PAD]\ndog\n");
  EXPECT_THROW(WordPiece::load(folder.path() / "vocab.txt"), DataError);
  write_file(folder.path() / "vocab.txt", "[PAD]\nd\xF6g\n");
  EXPECT_THROW(WordPiece::load(folder.path() / "vocab.txt"), DataError);
}

TEST(WordPiece, GivesTheExpectedIdsOfRealText) {
  fs::path expected = fs::path(LOCKSTEP_SHARED) / "data/bert/expected_ids.jsonl.gz";
  if (!fs::exists(expected)) GTEST_SKIP() << "no " << expected;
  WordPiece model = WordPiece::load(kBertVocabulary);
  EXPECT_EQ(model.vocab_size(), 30522);
  WordPieceInput input;
  int rows = 0;
  for_each_line(expected, [&](std::string_view line, int64_t) {
    Json row = Json::parse(line);
    std::string text = row["text"];
    if (row.contains("pair") && !row["pair"].is_null()) {
      model.encode_input(text, row["pair"].get<std::string>(), input);
    } else {
      model.encode_input(text, input);
    }
    EXPECT_EQ(input.ids, row["ids"].get<Ids>()) << text;
    EXPECT_EQ(input.type_ids, row["type_ids"].get<Ids>()) << text;
    ++rows;
  });
  EXPECT_EQ(rows, 200);
}

// What the library makes of the lines; a line is a text or a list of two.
Json reference(const Json& lines, bool lowercase, int max_length) {
  TemporaryFolder folder;
  Json job{{"model", kBertVocabulary.string()},
           {"kind", "wordpiece"},
           {"lowercase", lowercase},
           {"max_length", max_length},
           {"lines", lines}};
  write_file(folder.path() / "job.json", job.dump());
  PythonResult result =
      run_parity_script("tokenizer_ids.py", "'" + (folder.path() / "job.json").string() + "'");
  if (result.status != 0) throw DataError("tokenizer_ids.py: {}", result.errors);
  return Json::parse(result.output);
}

void expect_equal(const WordPiece& model, const Json& line, const Json& expected,
                  std::size_t most) {
  WordPieceInput input;
  if (line.is_array()) {
    model.encode_input(line[0].get<std::string>(), line[1].get<std::string>(), input, most);
  } else {
    model.encode_input(line.get<std::string>(), input, most);
  }
  EXPECT_EQ(input.ids, expected["ids"].get<Ids>()) << line;
  EXPECT_EQ(input.type_ids, expected["type_ids"].get<Ids>()) << line;
  EXPECT_EQ(model.decode(input.ids), expected["decoded"].get<std::string>()) << line;
}

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kParts{
      "the",    "Cat",     "running", "unaffable", "Größe",  "STRASSE", "don't",
      "x",      "[SEP]",   "[CLS]",   "[",         "]",      "日本",    "語",
      "한국어", "e\u0301", "İ",       "ΟΔΟΣ",      "\u00A0", "\u200B",  "\uFEFF",
      "\x07",   "😀",       "½",       "≠",         "`",      ";",       "\u037E",
      "3.14",   "##ing",   "...",     "ﬁ",         "ẞ",      "\u2028",  "क्षि",
      "ไทย",    "𝔘",       "𠀀",      "É",         "qwzx",   "\u00AD",  "unbelievable",
      "'s",     "n't",     "\uFFFD"};
  std::string out;
  for (auto left = random() % 14; left > 0; --left) {
    out += kParts[random() % kParts.size()];
    if (random() % 4 != 0) out += ' ';
  }
  return random() % 40 == 0 ? out + std::string(99 + random() % 4, 'a') : out;
}

TEST(WordPiece, EqualsTokenizersOnRandomText) {
  if (!fs::exists(kBertVocabulary)) GTEST_SKIP() << "no " << kBertVocabulary;
  if (!python_has("tokenizers")) GTEST_SKIP() << "no tokenizers for " << LOCKSTEP_PYTHON;
  std::mt19937 random(20181011);
  for (bool lowercase : {true, false}) {
    for (int most : {0, 15}) {
      Json lines = Json::array();
      for (int i = 0; i < 500; ++i) {
        std::string text = random_text(random);
        lines.push_back(i % 3 == 0 ? Json{text, random_text(random)} : Json(text));
      }
      Json expected = reference(lines, lowercase, most);
      WordPiece model = WordPiece::load(kBertVocabulary, {.lowercase = lowercase});
      for (std::size_t i = 0; i < lines.size(); ++i) {
        std::size_t limit = most == 0 ? SIZE_MAX : static_cast<std::size_t>(most);
        expect_equal(model, lines[i], expected[i], limit);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(WordPiece, EqualsTokenizersOnEveryCharacter) {
  if (!fs::exists(kBertVocabulary)) GTEST_SKIP() << "no " << kBertVocabulary;
  if (!python_has("tokenizers")) GTEST_SKIP() << "no tokenizers for " << LOCKSTEP_PYTHON;
  Json lines = Json::array();
  std::string line;
  for (char32_t c = 1; c < 0xE0200; ++c) {
    if (c == 0x4F00) c = 0x9F00;    // Chinese characters are treated all alike,
    if (c == 0x20100) c = 0xE0000;  // and behind these almost nothing is assigned
    if (c >= 0xD800 && c < 0xE000) continue;
    line += 'a';
    append_utf8(c, line);
    line += "b ";
    append_utf8(c, line);
    line += ' ';
    if (c % 64 == 63) lines.push_back(std::exchange(line, {}));
  }
  Json expected = reference(lines, true, 0);
  WordPiece model = WordPiece::load(kBertVocabulary);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    expect_equal(model, lines[i], expected[i], SIZE_MAX);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lockstep
