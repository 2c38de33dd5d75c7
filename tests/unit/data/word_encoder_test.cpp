#include "data/tokenize/word_encoder.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/random.h"
#include "base/text.h"

namespace lockstep {
namespace {

std::vector<std::string> real_lines() {
  std::vector<std::string> out;
  fs::path data = fs::path(LOCKSTEP_SHARED) / "data";
  for (const char* name : {"wmt-newstest/train.2008-2012", "multi30k/train", "mlqe-pe/train",
                           "tatoeba/train", "opennmt10k/train.tok", "wmt-newstest/newstest2014"}) {
    for (const char* language : {".en.gz", ".de.gz"}) {
      fs::path path = data / (std::string(name) + language);
      if (!fs::exists(path)) return {};
      for (std::string& line : read_lines(path)) out.push_back(std::move(line));
    }
  }
  return out;
}

WordCounts count(const std::vector<std::string>& lines) {
  WordCounts out;
  for (const std::string& line : lines) out.add_line(line);
  return out;
}

std::string train(const std::string& lines, std::unordered_map<std::string, std::string> options) {
  TemporaryFolder folder;
  write_file(folder.path() / "text", lines);
  options["input"] = (folder.path() / "text").string();
  options["model_prefix"] = (folder.path() / "m").string();
  options["minloglevel"] = "3";
  EXPECT_TRUE(sentencepiece::SentencePieceTrainer::Train(options).ok());
  return read_file(folder.path() / "m.model");
}

constexpr const char* kText =
    "the cat sat on the mat\nthe dog sat on the log\nein Hund und eine Katze\n"
    "der Hund saß auf dem Holz\na cat and a dog and the log\n";

void expect_equal_encoding(const Subword& subword, const WordEncoder& encoder,
                           const std::vector<std::string>& lines) {
  std::vector<int32_t> ids;
  int64_t differ = 0;
  for (const std::string& line : lines) {
    ids.clear();
    encoder.encode(line, ids);
    if (ids == subword.encode(line)) continue;
    if (++differ == 1) ADD_FAILURE() << "differs: " << line;
  }
  EXPECT_EQ(differ, 0) << "of " << lines.size() << " lines";
}

TEST(WordEncoder, EncodesAllRealTextAsSentencePieceDoes) {
  std::vector<std::string> lines = real_lines();
  if (lines.empty()) GTEST_SKIP() << "no real data in " << LOCKSTEP_SHARED;
  WordCounts counts = count(lines);
  // From every 20th line, so that many words and characters are new to the model.
  WordCounts some;
  for (std::size_t i = 0; i < lines.size(); i += 20) some.add_line(lines[i]);
  Subword subword = Subword::from_bytes(learn_subwords({.vocab_size = 4000}, some));
  ASSERT_TRUE(encodes_word_by_word(subword.serialized()));
  // A small table: both the words in it and those that are not.
  WordEncoder encoder(subword, counts, counts.size() / 3);
  expect_equal_encoding(subword, encoder, lines);
}

TEST(WordEncoder, EncodesAnyCharactersAsSentencePieceDoes) {
  Subword subword =
      Subword::from_bytes(learn_subwords({.vocab_size = 60}, count(split(kText, '\n'))));
  // Spaces of all kinds, marks that combine, ligatures, full width, what normalisation removes,
  // replaces by several characters or joins, the mark of a space itself, unknown scripts.
  const std::vector<std::string> parts{" ",
                                       "  ",
                                       "\t",
                                       "\xC2\xA0",
                                       "\xE3\x80\x80",
                                       "\xE2\x80\x8B",
                                       "\xEF\xBB\xBF",
                                       "\xE2\x96\x81",
                                       "a",
                                       "the",
                                       "Hund",
                                       "\xC2\xA8",
                                       "\xCC\x88",
                                       "u\xCC\x88",
                                       "\xEF\xAC\x81",
                                       "\xC2\xBD",
                                       "\r",
                                       "\xEF\xBC\xA1",
                                       "\xE2\x80\xA6",
                                       "\xC2\xAD",
                                       "\x01",
                                       "\x7F",
                                       "\xD0\x96",
                                       "\xE6\xBC\xA2",
                                       "\xF0\x9F\x98\x80",
                                       "\xE3\x82\xAB\xE3\x82\x99",
                                       "\xEA\xB0\x80",
                                       "\xC3\x9F",
                                       "1",
                                       ".",
                                       "<s>",
                                       "</s>",
                                       "\xE2\x96\x85",
                                       "\xFF",
                                       "\xCC\x81",
                                       "\xE2\x80\x8D"};
  std::vector<std::string> lines;
  for (uint64_t i = 0; i < 40'000; ++i) {
    std::string line;
    uint64_t length = 1 + random_below(i, 0, 12);
    for (uint64_t k = 1; k <= length; ++k) line += parts[random_below(i, k, parts.size())];
    lines.push_back(line);
  }
  WordEncoder encoder(subword, count(lines), 1000);
  expect_equal_encoding(subword, encoder, lines);
}

TEST(WordEncoder, LeavesModelsToSentencePieceThatDoNotFit) {
  using Options = std::unordered_map<std::string, std::string>;
  const Options bpe{{"model_type", "bpe"}, {"vocab_size", "60"}, {"hard_vocab_limit", "false"}};
  auto with = [&](const std::string& key, const std::string& value) {
    Options out = bpe;
    out[key] = value;
    return out;
  };
  EXPECT_TRUE(encodes_word_by_word(train(kText, bpe)));
  for (const Options& options :
       {with("model_type", "unigram"), with("split_by_whitespace", "false"),
        with("add_dummy_prefix", "false"), with("remove_extra_whitespaces", "false"),
        with("treat_whitespace_as_suffix", "true"), with("user_defined_symbols", "on the")}) {
    std::string model = train(kText, options);
    EXPECT_FALSE(encodes_word_by_word(model));
    Subword subword = Subword::from_bytes(model);
    std::vector<std::string> lines = split(kText, '\n');
    lines.push_back("  on  the the   mat ");
    expect_equal_encoding(subword, WordEncoder(subword, count(lines)), lines);
  }
  // A rule of normalisation over a space: "n t" becomes "nt".
  TemporaryFolder folder;
  write_file(folder.path() / "rules.tsv", "6E 20 74\t6E 74\n");
  EXPECT_FALSE(encodes_word_by_word(
      train(kText, with("normalization_rule_tsv", (folder.path() / "rules.tsv").string()))));
  EXPECT_FALSE(encodes_word_by_word("no model"));
  EXPECT_FALSE(encodes_word_by_word(""));
}

TEST(LearnSubwords, KeepsTheAlphabetWhenItForgetsRareWords) {
  WordCounts counts = count(split(kText, '\n'));
  counts.add("zebra");
  counts.add("zoo");
  Subword subword =
      Subword::from_bytes(learn_subwords({.vocab_size = 40, .most_words = 10}, counts));
  std::vector<int32_t> ids = subword.encode("zebra");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), subword.unk_id()), 0);
}

}  // namespace
}  // namespace lockstep
