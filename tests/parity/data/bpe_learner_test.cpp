// Subwords learned from counts of words against SentencePiece of the Python wheel, which learns
// from lines. (Debian's 0.1.97 does not look at all pairs at each merge and may learn others.)
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/tokenize/subword.h"
#include "support/python.h"

namespace lockstep {
namespace {

std::string learned_here(const SubwordConfig& config, const std::vector<fs::path>& files) {
  WordCounts counts;
  for (const fs::path& file : files) {
    for_each_line(file, [&](std::string_view line, int64_t) { counts.add_line(line); });
  }
  return Subword::from_bytes(learn_subwords(config, counts)).vocabulary_text();
}

std::string learned_there(const SubwordConfig& config, const std::vector<fs::path>& files) {
  std::string arguments = fmt::format("{} {}", config.vocab_size, config.character_coverage);
  for (const fs::path& file : files) arguments += fmt::format(" '{}'", file.string());
  PythonResult result = run_parity_script("learned_pieces.py", arguments);
  EXPECT_EQ(result.status, 0) << result.errors;
  return result.output;
}

TEST(LearnSubwords, GivesThePiecesAndScoresOfSentencePieceOnRealText) {
  if (!python_has("sentencepiece")) GTEST_SKIP() << "no sentencepiece in " << LOCKSTEP_PYTHON;
  fs::path data = fs::path(LOCKSTEP_SHARED) / "data";
  if (!fs::exists(data / "wmt-newstest")) GTEST_SKIP() << "no real data in " << data;
  TemporaryFolder folder;
  std::vector<fs::path> files;
  for (const char* name : {"wmt-newstest/newstest2014", "mlqe-pe/dev", "multi30k/val",
                           "tatoeba/dev", "opennmt10k/train.tok"}) {
    for (const char* language : {".en.gz", ".de.gz"}) {
      std::string text;
      for_each_line(data / (std::string(name) + language),
                    [&](std::string_view line, int64_t) { text.append(line) += '\n'; });
      files.push_back(folder.path() / std::to_string(files.size()));
      write_file(files.back(), text);
    }
  }
  for (SubwordConfig config : {SubwordConfig{.vocab_size = 8000},
                               SubwordConfig{.vocab_size = 600, .character_coverage = 0.999}}) {
    EXPECT_EQ(learned_here(config, files), learned_there(config, files)) << config.vocab_size;
  }
}

TEST(LearnSubwords, GivesThePiecesAndScoresOfSentencePieceOnOddText) {
  if (!python_has("sentencepiece")) GTEST_SKIP() << "no sentencepiece in " << LOCKSTEP_PYTHON;
  TemporaryFolder folder;
  // Runs of one letter, scripts that meet, marks that combine, spaces of all kinds, digits,
  // special pieces in the text, characters that normalisation joins, splits or removes.
  std::string text;
  for (const char* line :
       {"aaaaaa aaa aaaa aa aaaaa", "abab ababab baba", "漢字かなカタカナー 漢字かな ー漢字",
        "Жизнь жизнь a\xD0\xB6 \xD0\xB6\x61", "u\xCC\x88\x75\xCC\x88 \xCC\x88x e\xCC\x81",
        "one\ttwo\xC2\xA0three\xE3\x80\x80 four\xE2\x80\x8B five", "2014 2014 2015 20,14 3.14",
        "\xEF\xAC\x81nd \xEF\xBC\xA1\xEF\xBC\xA2 \xC2\xBD \xE2\x80\xA6 \xC2\xA8",
        "a-b a-b (a) \"a\"", "x<s>y </s> <unk>z",
        "supercalifragilisticexpialidocious supercalifragilistic"}) {
    for (int i = 0; i < 3; ++i) text.append(line) += '\n';
  }
  write_file(folder.path() / "text", text);
  for (int32_t vocabulary : {120, 150}) {
    SubwordConfig config{.vocab_size = vocabulary};
    EXPECT_EQ(learned_here(config, {folder.path() / "text"}),
              learned_there(config, {folder.path() / "text"}));
  }
}

}  // namespace
}  // namespace lockstep
