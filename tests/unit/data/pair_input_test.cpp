#include "data/labelled/pair_input.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/labelled/language_names.h"
#include "formats/text_file.h"
#include "support/debian_mirror.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using testing::archive_of;
using testing::Files;

const LanguagePair kEnglishGerman{"en", "de"};

class PairsOfOneFile : public ::testing::Test {
 protected:
  // What is taken out of a file of that name: "source|target" a pair, after what it was taken from.
  std::vector<std::string> take(const std::string& name, const std::string& content,
                                const PairOptions& options = {kEnglishGerman, {}}) {
    write_file(folder_.path() / name, content);
    const TakenPairs taken = take_pairs(folder_.path() / name, options, out_.path(), "train");
    EXPECT_EQ(taken.files.taken->file, folder_.path() / name);
    languages_ = taken.languages.source + "-" + taken.languages.target;
    std::vector<std::string> out{taken.files.taken->parts};
    const std::vector<std::string> sources = read_lines(taken.files.source),
                                   targets = read_lines(taken.files.target);
    EXPECT_EQ(sources.size(), targets.size());
    for (std::size_t i = 0; i < sources.size(); ++i) out.push_back(sources[i] + "|" + targets[i]);
    return out;
  }

  std::string zip(const Files& files) { return archive_of(files, archive_write_set_format_zip); }

  TemporaryFolder folder_, out_;
  std::string languages_;
};

using Taken = std::vector<std::string>;

TEST_F(PairsOfOneFile, AreFoundByTheNamesOfColumns) {
  EXPECT_EQ(take("a.csv",
                 "\xEF\xBB\xBFid,DE,EN\r\n7,\"der, Hund\",the dog\r\n8,\"eine\nKatze\",a cat\r\n"),
            (Taken{"columns EN and DE", "the dog|der, Hund", "a cat|eine Katze"}));
  EXPECT_EQ(take("a.tsv", "src\ttgt\nthe dog\tder Hund\n"),
            (Taken{"columns src and tgt", "the dog|der Hund"}));
  EXPECT_EQ(languages_, "en-de");
  EXPECT_EQ(take("a.jsonl", "{\"id\": 1, \"translation\": {\"de\": \"Hund\", \"en\": \"dog\"}}\n"),
            (Taken{"columns translation.en and translation.de", "dog|Hund"}));
  EXPECT_EQ(
      take("a.json", "[{\"en\": \"dog\", \"de\": \"Hund\"}, {\"en\": \"cat\", \"de\": \"Katze\"}]"),
      (Taken{"columns en and de", "dog|Hund", "cat|Katze"}));
}

TEST_F(PairsOfOneFile, WithoutAHeaderAreTheFirstTwoTexts) {
  EXPECT_EQ(take("deu.txt", "Go.\tGeh.\tCC-BY 2.0 #1\nHi.\tHallo!\tCC-BY 2.0 #2\n"),
            (Taken{"columns 1 and 2", "Go.|Geh.", "Hi.|Hallo!"}));
  EXPECT_EQ(take("links.tsv", "1276\tGo.\t77\tGeh.\n"), (Taken{"columns 2 and 4", "Go.|Geh."}));
  EXPECT_ERROR(take("a.tsv", "en\tfr\ndog\tchien\n"), DataError, "(it has en, fr)");
  EXPECT_ERROR(take("a.csv", "1,dog\n"), DataError, "with a comma between them");
}

TEST_F(PairsOfOneFile, TakesTheColumnsThatTheUserNames) {
  const std::string table = "English words,German words,note\ndog,Hund,x\n";
  EXPECT_EQ(take("a.csv", table, {kEnglishGerman, {.text = "German words", .pair = "note"}}),
            (Taken{"columns German words and note", "Hund|x"}));
  EXPECT_EQ(take("a.tsv", "x\tdog\tHund\n", {kEnglishGerman, {.text = "3", .pair = "2"}}),
            (Taken{"columns 3 and 2", "Hund|dog"}));
  EXPECT_ERROR(take("a.csv", table, {kEnglishGerman, {.text = "English word", .pair = "note"}}),
               DataError, "no column \"English word\" (--source-column); did you mean");
  EXPECT_ERROR(take("a.csv", table, {kEnglishGerman, {.text = "note"}}), ConfigError,
               "--source-column and --target-column, both or none");
}

TEST_F(PairsOfOneFile, TellsTheLanguagesWhereNoneAreAskedFor) {
  take("a.tsv", "id\tde\ten\n1\tHund\tdog\n", {});
  EXPECT_EQ(languages_, "en-de");
  take("a.tsv", "de\ten\nHund\tdog\n", {{"de", ""}, {}});
  EXPECT_EQ(languages_, "de-en");
  take("a.tsv", "id\tde\nanjing\tHund\n", {});  // two columns: here id is Indonesian
  EXPECT_EQ(languages_, "id-de");
  EXPECT_EQ(take("a.tsv", "red\trot\n", {}), (Taken{"columns 1 and 2", "red|rot"}));
  EXPECT_EQ(take("a.tsv", "red\trot\n"), (Taken{"columns 1 and 2", "red|rot"}));
  EXPECT_EQ(take("a.tsv", "dog\tHund\n", {}), (Taken{"columns 1 and 2", "dog|Hund"}));
  EXPECT_EQ(languages_, "source-target");
  EXPECT_ERROR(take("a.jsonl", "{\"en\": \"dog\", \"de\": \"Hund\", \"fr\": \"chien\"}\n", {}),
               DataError, "which columns are source and target? (it has en, de, fr)");
}

TEST_F(PairsOfOneFile, OfAnArchiveAreTwoTextsOrATable) {
  const Files moses{{"README", "by whom"},
                    {"LICENSE", "as you like"},
                    {"X.de-en.de", "Hund\n"},
                    {"X.de-en.en", "dog\n"},
                    {"X.de-en.ids", "1\n"}};
  EXPECT_EQ(take("de-en.txt.zip", zip(moses)), (Taken{"X.de-en.en and X.de-en.de", "dog|Hund"}));
  EXPECT_EQ(take("de-en.txt.zip", zip(moses), {}),
            (Taken{"X.de-en.en and X.de-en.de", "dog|Hund"}));
  EXPECT_EQ(languages_, "en-de");
  take("de-en.txt.zip", zip(moses), {{"de", "en"}, {}});
  EXPECT_EQ(languages_, "de-en");
  write_file(folder_.path() / "dev.zip", zip({{"X.de-en.de", "Katze\n"}, {"X.de-en.en", "cat\n"}}));
  const ParallelFiles train =
      take_pairs(folder_.path() / "de-en.txt.zip", {}, out_.path(), "a").files;
  const ParallelFiles dev = take_pairs(folder_.path() / "dev.zip", {}, out_.path(), "b").files;
  EXPECT_EQ(read_lines(train.source), (Taken{"dog"}));  // of equal names in their archives
  EXPECT_EQ(read_lines(dev.source), (Taken{"cat"}));
  EXPECT_EQ(
      take("zh.zip", zip({{"x.en", "dog\n"}, {"x.zh-Hans", "狗\n"}}), {{"en", "zh-Hans"}, {}}),
      (Taken{"x.en and x.zh-Hans", "dog|狗"}));
  EXPECT_EQ(take("deu-eng.zip", zip({{"_about.txt", "by whom"}, {"deu.txt", "Go.\tGeh.\n"}})),
            (Taken{"deu.txt, columns 1 and 2", "Go.|Geh."}));
  const std::string tar =
      archive_of({{"a/b.csv", "en,de\ndog,Hund\n"}}, archive_write_set_format_gnutar,
                 archive_write_add_filter_gzip);
  EXPECT_EQ(take("a.tar.gz", tar), (Taken{"a/b.csv, columns en and de", "dog|Hund"}));
}

TEST_F(PairsOfOneFile, SayWhatIsWrongWithTheFile) {
  EXPECT_ERROR(take("a.txt", "A sentence.\n"), DataError,
               "expected source and target in each line, with a tab between them");
  EXPECT_ERROR(take("a.tsv", "dog\tHund\ncat\n"), DataError, "a.tsv:2: 1 field, expected 2");
  EXPECT_ERROR(take("a.zip", zip({{"x.fr", "chien\n"}, {"x.en", "dog\n"}})), DataError,
               "no texts of en and de, and no table (it has x.en, x.fr)");
  EXPECT_ERROR(take("a.zip", zip({{"x.en", ""}, {"x.de", ""}, {"y.en", ""}, {"y.de", ""}})),
               DataError, "more than one pair of texts");
  EXPECT_ERROR(take("a.zip", zip({{"a.tsv", "x\ty\n"}, {"b.tsv", "x\ty\n"}})), DataError,
               "more than one table (it has a.tsv, b.tsv)");
  EXPECT_ERROR(take("a.zip", "no archive"), DataError, "a.zip");
  EXPECT_FALSE(may_hold_pairs("train.en"));
  EXPECT_TRUE(may_hold_pairs("train.tsv.gz"));
}

// The disk is full long before the end of the table, at which nobody should have to wait for it.
TEST_F(PairsOfOneFile, SayThatTheDiskIsFull) {
  fs::create_symlink("/dev/full", out_.path() / "train.source");
  std::string table = "en\tde\n";
  for (int i = 0; i < 20000; ++i) table += fmt::format("line {0}\tZeile {0}\n", i);
  EXPECT_ERROR(take("t.tsv", table), MachineError,
               "train.source: cannot be written: No space left");
}

TEST(LanguageNames, AreCodesAndTheUsualWords) {
  for (const char* name : {"en", "deu", "pt-BR", "zh-Hans", "en_US", "source", "tgt", "id"}) {
    EXPECT_TRUE(is_language_name(name)) << name;
  }
  for (const char* name : {"", "txt", "csv", "text", "e1", "english"}) {
    EXPECT_FALSE(is_language_name(name)) << name;
  }
  EXPECT_EQ(language_of("train.en"), "en");
  EXPECT_EQ(language_of("a/train.tok.de.gz"), "de");
  EXPECT_EQ(language_of("train.pt-br"), "pt-br");
  EXPECT_EQ(language_of("train.source"), "source");
  EXPECT_FALSE(language_of("train.txt"));
  EXPECT_FALSE(language_of("train.json.gz"));
  EXPECT_FALSE(language_of("train"));
  EXPECT_FALSE(language_of(".en"));
}

}  // namespace
}  // namespace lockstep
