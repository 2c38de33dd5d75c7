#include "data/tokenize/bert_tokenizer.h"

#include <gtest/gtest.h>

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

const fs::path kVocabulary = fs::path(LOCKSTEP_SHARED) / "data/bert/bert-base-uncased-vocab.txt";

const std::vector<std::string> kPieces{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "dog",   "Dog",
                                       "d",     "##og",  "日",    "##本",  "本",     "\u00E9"};

class BertTokenizers : public ::testing::Test {
 protected:
  fs::path folder() const { return folder_.path(); }
  void write(const char* name, const std::string& text) { write_file(folder() / name, text); }
  void write_vocabulary(const char* end = "\n") {
    std::string text;
    for (const std::string& piece : kPieces) text += piece + end;
    write("vocab.txt", text);
  }
  static Ids encode(const BertTokenizer& tokenizer, std::string_view text) {
    WordPieceInput input;
    tokenizer.encode(text, input, 64);
    return {input.ids.begin() + 1, input.ids.end() - 1};
  }
  TemporaryFolder folder_;
};

TEST_F(BertTokenizers, TheConfigBesideTheVocabularyCounts) {
  write_vocabulary();
  EXPECT_EQ(encode(BertTokenizer::load(folder()), "Dog \u00C9 日本"), (Ids{5, 1, 9, 11}));
  write("tokenizer_config.json",
        R"({"do_lower_case": false, "tokenize_chinese_chars": false, "strip_accents": null,
            "unk_token": "[UNK]", "cls_token": {"content": "[CLS]"}})");
  const BertTokenizer cased = BertTokenizer::load(folder());
  EXPECT_EQ(encode(cased, "Dog \u00E9 日本"), (Ids{6, 12, 9, 10}));
  EXPECT_FALSE(cased.identity().lowercase);
  EXPECT_FALSE(cased.identity().strip_accents);
  EXPECT_EQ(encode(BertTokenizer::load(folder(), true), "Dog"), (Ids{5}));
  EXPECT_EQ(encode(BertTokenizer::load(folder() / "vocab.txt"), "Dog"), (Ids{6}));
  write("tokenizer_config.json", R"({"strip_accents": false})");
  EXPECT_EQ(encode(BertTokenizer::load(folder()), "\u00C9"), (Ids{12}));
}

TEST_F(BertTokenizers, ReadsTokenizerJsonWhereThatIsAll) {
  Json vocabulary = Json::object();
  for (std::size_t i = 0; i < kPieces.size(); ++i) vocabulary[kPieces[i]] = i;
  Json json{{"model", {{"type", "WordPiece"}, {"vocab", vocabulary}}},
            {"normalizer",
             {{"type", "BertNormalizer"},
              {"lowercase", false},
              {"strip_accents", nullptr},
              {"handle_chinese_chars", true}}}};
  write("tokenizer.json", json.dump());
  EXPECT_EQ(encode(BertTokenizer::load(folder()), "Dog dog 日本"), (Ids{6, 5, 9, 11}));
  json["model"]["vocab"]["dog"] = 6;
  write("tokenizer.json", json.dump());
  EXPECT_ERROR(BertTokenizer::load(folder()), DataError, "expected each of 0 to 12 once");
  json["model"]["type"] = "BPE";
  write("tokenizer.json", json.dump());
  EXPECT_ERROR(BertTokenizer::load(folder()), DataError, "another kind than BERT's WordPiece");
}

TEST_F(BertTokenizers, SavesWhatItLoads) {
  write_vocabulary("\r\n");
  write("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": true})");
  const BertTokenizer tokenizer = BertTokenizer::load(folder());
  TemporaryFolder other;
  EXPECT_EQ(tokenizer.save(other.path()).size(), 2u);
  EXPECT_EQ(BertTokenizer::load(other.path()).identity(), tokenizer.identity());
}

TEST_F(BertTokenizers, RefusesWhatItWouldReadOtherwise) {
  EXPECT_ERROR(BertTokenizer::load(folder()), DataError, "neither vocab.txt nor tokenizer.json");
  write_vocabulary();
  write("tokenizer_config.json", R"({"unk_token": "<unk>"})");
  EXPECT_ERROR(BertTokenizer::load(folder()), DataError, "unk_token is \"<unk>\"");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"13": {"content": "[NEW]"}}})");
  EXPECT_ERROR(BertTokenizer::load(folder()), DataError,
               "the added token \"[NEW]\" (id 13) is not supported");
  write("tokenizer_config.json", R"({"do_lower_case": "no"})");
  EXPECT_ERROR(BertTokenizer::load(folder()), DataError, "do_lower_case: expected true or false");
  write("tokenizer_config.json", "{");
  EXPECT_ERROR(BertTokenizer::load(folder()), DataError, "not the JSON of a tokenizer");
}

TEST_F(BertTokenizers, SaysInWhatTwoDiffer) {
  write_vocabulary();
  const TokenizerIdentity here = BertTokenizer::load(folder()).identity();
  check_same_tokenizer(here, "texts", here, "bert");
  TokenizerIdentity other = here;
  other.lowercase = false;
  EXPECT_ERROR(check_same_tokenizer(here, "texts", other, "bert"), DataError,
               "lower-cased: no there, yes here");
  other = here;
  other.vocab_sha256[0] ^= 1;
  EXPECT_ERROR(check_same_tokenizer(here, "texts", other, "bert"), DataError, "vocabulary: ");
  other.vocab_size = 28'996;
  EXPECT_ERROR(check_same_tokenizer(here, "texts", other, "bert"), DataError,
               "pieces: 28,996 there, 13 here");
  check_vocabulary_fits(here, "texts", 16);
  EXPECT_ERROR(check_vocabulary_fits(here, "texts", 12), DataError,
               "a vocabulary of 13 pieces, but the embedding has 12 rows");
}

TEST_F(BertTokenizers, TellsWhenItCuts) {
  const BertTokenizer tokenizer(kPieces, {});
  WordPieceInput input;
  EXPECT_FALSE(tokenizer.encode("dog dog", input, 4));
  EXPECT_TRUE(tokenizer.encode("dog dog dog", input, 4));
  EXPECT_FALSE(tokenizer.encode("dog", "dog", input, 5));
  EXPECT_TRUE(tokenizer.encode("dog", "dog dog", input, 5));
  EXPECT_EQ(input.ids, (Ids{2, 5, 3, 5, 3}));
}

// Words, marks, controls and any characters of Unicode, with and without blanks between them.
std::string random_text(std::mt19937& random, int parts) {
  static const std::vector<std::string> kParts{
      "the",           "Running", "unaffable", "don't",
      "[SEP]",         "[CLS]",   "[MASK]",    "[sep]",
      "\u00C9t\u00E9", "日本語",  "한국어",    "😀👍🏽",
      "a\u0301\u0323", "\u0130",  "ΟΔΟΣ",      "\u00A0",
      "\u200B",        "\x07",    "\t",        "½",
      "3.14",          "##ing",   "ﬁ",         "ẞ",
      "क्षि",           "𠀀",      "\uFFFD",    "$5,000"};
  // Ends of ranges: Latin, Greek to Arabic, combining marks, symbols, CJK, all of Unicode.
  static constexpr char32_t kRanges[][2] = {{0x20, 0x24F},      {0x370, 0x6FF},   {0x300, 0x36F},
                                            {0x2000, 0x2BFF},   {0x3000, 0x9FFF}, {0xA000, 0xFFFF},
                                            {0x10000, 0x2FFFF}, {1, 0x10FFFF}};
  std::string out;
  for (int i = 0; i < parts; ++i) {
    if (random() % 2 == 0) {
      out += kParts[random() % kParts.size()];
    } else {
      const char32_t* range = kRanges[random() % std::size(kRanges)];
      const char32_t c = range[0] + random() % (range[1] - range[0] + 1);
      append_utf8(c >= 0xD800 && c < 0xE000 ? U'x' : c, out);
    }
    if (random() % 3 == 0) out += ' ';
  }
  return random() % 50 == 0 ? out + std::string(99 + random() % 4, 'b') : out;
}

TEST_F(BertTokenizers, EqualTransformersOnRandomText) {
  if (!fs::exists(kVocabulary)) GTEST_SKIP() << "no " << kVocabulary;
  if (!python_has("transformers")) GTEST_SKIP() << "no transformers for " << LOCKSTEP_PYTHON;
  std::mt19937 random(8);
  const std::vector<std::string> configs{
      R"({})", R"({"do_lower_case": false})", R"({"do_lower_case": true, "strip_accents": false})",
      R"({"do_lower_case": false, "strip_accents": true, "tokenize_chinese_chars": false})"};
  Json jobs = Json::array();
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const std::string name = std::to_string(i);
    fs::create_directory(folder() / name);
    fs::copy_file(kVocabulary, folder() / name / "vocab.txt");
    write((name + "/tokenizer_config.json").c_str(), configs[i]);
    for (int most : {512, 16, 17}) {
      Json lines = Json::array();
      for (int k = 0; k < 200; ++k) {
        Json first = random_text(random, static_cast<int>(random() % 24));
        if (k % 3 == 0) first = Json{first, random_text(random, static_cast<int>(random() % 24))};
        lines.push_back(first);
      }
      jobs.push_back(
          {{"folder", (folder() / name).string()}, {"max_length", most}, {"lines", lines}});
    }
  }
  write("jobs.json", jobs.dump());
  PythonResult result =
      run_parity_script("bert_tokenizer_ids.py", "'" + (folder() / "jobs.json").string() + "'");
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json expected = Json::parse(result.output);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const BertTokenizer tokenizer = BertTokenizer::load(jobs[j]["folder"].get<std::string>());
    const std::size_t most = jobs[j]["max_length"];
    WordPieceInput input;
    for (std::size_t k = 0; k < jobs[j]["lines"].size(); ++k) {
      const Json& line = jobs[j]["lines"][k];
      if (line.is_array()) {
        tokenizer.encode(line[0].get<std::string>(), line[1].get<std::string>(), input, most);
      } else {
        tokenizer.encode(line.get<std::string>(), input, most);
      }
      ASSERT_EQ(input.ids, expected[j][k]["ids"].get<Ids>()) << jobs[j]["folder"] << line;
      ASSERT_EQ(input.type_ids, expected[j][k]["type_ids"].get<Ids>()) << line;
    }
  }
}

}  // namespace
}  // namespace lockstep
