#include "data/tokenize/translation_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/tokenize/published_vocabulary.h"
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

class Vocabularies : public ::testing::Test {
 protected:
  const fs::path& path() const { return folder_.path(); }
  void put(const char* name, const std::string& text) const { write_file(path() / name, text); }

  // The pieces of `model` from id 4 on, numbered behind `first`.
  static nlohmann::ordered_json numbered(const std::string& model,
                                         const std::vector<std::string>& first) {
    nlohmann::ordered_json out;
    for (const std::string& piece : first) out[piece] = out.size();
    const Subword subword = Subword::from_bytes(model);
    for (int32_t id = 4; id < subword.vocab_size(); ++id) out[subword.piece(id)] = out.size();
    return out;
  }

  void put_marian() const {
    nlohmann::ordered_json ids = numbered(learned(24), {"</s>", "<unk>"});
    ids[">>deu<<"] = ids.size();
    ids["<pad>"] = ids.size();
    put("source.spm", learned(24));
    put("target.spm", learned(20));
    put("vocab.json", ids.dump());
  }
  void put_m2m100() const {
    put("sentencepiece.bpe.model", learned(24));
    put("vocab.json", numbered(learned(24), {"<s>", "<pad>", "</s>", "<unk>"}).dump());
  }

  TemporaryFolder folder_;
};

TEST_F(Vocabularies, OfMarianHaveTheIdsOfTheirJson) {
  put_marian();
  const TranslationTokenizer tokenizer = TranslationTokenizer::load(path());
  EXPECT_EQ(tokenizer.kind(), VocabularyKind::kMarian);
  EXPECT_EQ(tokenizer.vocab_size(), 24);  // 20 pieces, </s>, <unk>, the language, <pad>
  EXPECT_EQ(tokenizer.special().eos, 0);
  EXPECT_EQ(tokenizer.special().pad, 23);
  for (const std::string& line : kLines) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode_target(line)), line);
    for (int32_t id : tokenizer.encode_source(line)) EXPECT_GT(id, 1);
  }
  std::vector<int32_t> with = tokenizer.encode_source("one");
  with.insert(with.begin(), 22);
  EXPECT_EQ(tokenizer.encode_source(">>deu<<one"), with);
  with[0] = tokenizer.special().unk;
  EXPECT_EQ(tokenizer.encode_source(">>xyz<<one"), with);
  EXPECT_EQ(tokenizer.encode_source("\u4f60").back(), tokenizer.special().unk);
  EXPECT_EQ(tokenizer.language_id("k", "deu"), 22);
}

TEST_F(Vocabularies, OfM2m100HaveTheirLanguagesBehindThePieces) {
  put_m2m100();
  const TranslationTokenizer tokenizer = TranslationTokenizer::load(path());
  EXPECT_EQ(tokenizer.kind(), VocabularyKind::kM2m100);
  EXPECT_EQ(tokenizer.vocab_size(), 124);
  EXPECT_EQ(tokenizer.language_id("k", "af"), 24);
  EXPECT_EQ(tokenizer.language_id("k", "zu"), 123);
  EXPECT_ERROR(tokenizer.language_id("model.target_language", "ger"), ConfigError,
               "model.target_language = \"ger\": no language of this vocabulary");
  std::vector<int32_t> ids = tokenizer.encode_target(kLines[0]);
  ids.insert(ids.begin(), {2, 24});
  ids.push_back(2);
  EXPECT_EQ(tokenizer.decode(ids), kLines[0]);
}

TEST_F(Vocabularies, OfNllbAreShiftedByOneAndNameTheirLanguages) {
  put("sentencepiece.bpe.model", learned(24));
  put("special_tokens_map.json",
      R"({"additional_special_tokens": ["deu_Latn", {"content": "eng_Latn"}]})");
  put("tokenizer_config.json", R"({"tokenizer_class": "NllbTokenizer", "src_lang": "eng_Latn"})");
  const TranslationTokenizer tokenizer = TranslationTokenizer::load(path());
  EXPECT_EQ(tokenizer.kind(), VocabularyKind::kNllb);
  EXPECT_EQ(tokenizer.language_id("k", "deu_Latn"), 25);
  EXPECT_EQ(tokenizer.language_id("k", "eng_Latn"), 26);
  EXPECT_EQ(tokenizer.source_language(), "eng_Latn");
  const Subword model = Subword::load(path() / "sentencepiece.bpe.model");
  std::vector<int32_t> ids = model.encode(kLines[1]);
  for (int32_t& id : ids) ++id;
  EXPECT_EQ(tokenizer.encode_source(kLines[1]), ids);
  EXPECT_EQ(tokenizer.decode(ids), kLines[1]);
  put("special_tokens_map.json", "{}");
  EXPECT_ERROR(TranslationTokenizer::load(path()), DataError, "lists no languages");
  put("tokenizer_config.json", R"({"legacy_behaviour": true})");
  EXPECT_ERROR(TranslationTokenizer::load(path()), DataError, "legacy_behaviour");
}

TEST_F(Vocabularies, SayWhatIsMissingOrDamaged) {
  EXPECT_ERROR(TranslationTokenizer::load(path()), DataError,
               "has no vocabulary of a translation model");
  put_marian();
  fs::remove(path() / "source.spm");
  EXPECT_ERROR(TranslationTokenizer::load(path()), DataError, "there is no source.spm");
  put("source.spm", learned(24).substr(0, 200));
  EXPECT_ERROR(TranslationTokenizer::load(path()), DataError, "SentencePiece model");
  put_marian();
  put("vocab.json", "{\"</s>\": 0");
  EXPECT_ERROR(TranslationTokenizer::load(path()), DataError, "vocab.json: not a JSON object");
  put("vocab.json", R"({"</s>": 0, "<unk>": -5})");
  EXPECT_ERROR(TranslationTokenizer::load(path()), DataError, "\"<unk>\" has the id -5");
  put("vocab.json", R"({"</s>": 0})");
  EXPECT_ERROR(TranslationTokenizer::load(path()), DataError, "has no <unk>");
  put("vocab.json", R"({"</s>": 0, "<unk>": 1})");
  put("tokenizer_config.json", R"({"separate_vocabs": true})");
  EXPECT_ERROR(TranslationTokenizer::load(path()), DataError, "there is no target_vocab.json");
}

TEST_F(Vocabularies, AreEqualWhereTheirIdsAre) {
  put_marian();
  const std::string one = TranslationTokenizer::load(path()).identity();
  put("tokenizer_config.json", R"({"source_lang": "en"})");  // says nothing of ids
  EXPECT_EQ(TranslationTokenizer::load(path()).identity(), one);
  nlohmann::ordered_json ids = nlohmann::ordered_json::parse(read_file(path() / "vocab.json"));
  ids["<pad>"] = ids.size();
  put("vocab.json", ids.dump());
  EXPECT_NE(TranslationTokenizer::load(path()).identity(), one);
}

}  // namespace
}  // namespace lockstep
