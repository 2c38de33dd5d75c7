// lockstep new: what it writes trains untouched, by the commands that it prints.
#include <gtest/gtest.h>

#include "base/text.h"
#include "data/images/images_manifest.h"
#include "support/expect_says.h"
#include "support/program.h"
#include "support/tiny_corpus.h"
#include "support/tiny_images.h"
#include "support/tiny_texts.h"

namespace lockstep {
namespace {

class NewRuns : public ::testing::Test {
 protected:
  ProgramResult run(const std::string& arguments) const {
    return run_lockstep(arguments,
                        fmt::format("cd '{}' && OMP_NUM_THREADS=1", folder_.path().string()));
  }

  // The commands behind "Next:", less the program's name, on one rank.
  std::vector<std::string> make(const std::string& arguments) const {
    const ProgramResult made = run("new " + arguments);
    EXPECT_EQ(made.exit_code, 0) << made.errors;
    std::vector<std::string> out;
    for (const std::string& line : split(made.output, '\n')) {
      if (!line.starts_with("  lockstep ")) continue;
      out.push_back(line.substr(11));
      if (const std::size_t at = out.back().find("-n auto"); at != std::string::npos) {
        out.back().replace(at, 7, "-n 1");
      }
    }
    EXPECT_EQ(out.size(), 3u) << made.output;
    return out;
  }

  // Runs them all; what the last one printed.
  std::string follow(const std::vector<std::string>& commands) const {
    ProgramResult last;
    for (const std::string& command : commands) {
      last = run(command);
      EXPECT_EQ(last.exit_code, 0) << command << "\n" << last.errors;
    }
    return last.output;
  }

  void expect_dry_run(const std::string& config) const {
    const ProgramResult dry = run(fmt::format("train {} --dry-run", config));
    EXPECT_EQ(dry.exit_code, 0) << dry.errors;
  }

  TemporaryFolder folder_;
};

TEST_F(NewRuns, ATranslationTrainsUntouched) {
  fs::create_directories(folder_.path() / "numbers");
  write_tiny_text(folder_.path() / "numbers", "train", 400, 1);
  write_tiny_text(folder_.path() / "numbers", "dev", 20, 2);
  write_tiny_text(folder_.path() / "numbers", "test", 20, 3);
  const auto commands = make("translation numbers --minutes 0.03");
  expect_dry_run("numbers.toml");
  expect_says(follow(commands), "BLEU");
  // The corpus that is there now needs no preparation; the run gets a name of its own.
  const auto again = make("translation data/numbers --minutes 0.03 --out again.toml");
  EXPECT_EQ(again[0], "launch -n 1 -- train again.toml");
  EXPECT_EQ(again[1], "evaluate runs/again --split test");
  expect_says(run("new text data/numbers").errors, "lockstep new translation data/numbers");
}

TEST_F(NewRuns, ATableOfPairsBecomesACorpus) {
  write_tiny_text(folder_.path(), "train", 400, 1);
  const std::vector<std::string> english = read_lines(folder_.path() / "train.en"),
                                 german = read_lines(folder_.path() / "train.de");
  std::string table = "de\ten\n";
  for (std::size_t i = 0; i < english.size(); ++i) table += german[i] + "\t" + english[i] + "\n";
  write_file(folder_.path() / "my pairs.tsv", table);
  const auto commands = make("translation 'my pairs.tsv' --minutes 0.03");
  const ProgramResult prepared = run(commands[0]);
  EXPECT_EQ(prepared.exit_code, 0) << prepared.errors;
  expect_says(prepared.output, "my pairs.tsv: columns en and de");
  const std::string kept = read_file(folder_.path() / "data/my-pairs/train.en");
  EXPECT_NE(kept.find("eight"), std::string::npos);
  EXPECT_EQ(kept.find("acht"), std::string::npos);
  const ProgramResult again = run(commands[0]);
  expect_says(again.output, "already holds this corpus");
  expect_dry_run("my-pairs.toml");
  const ProgramResult lines = run("prepare text train.en --out data/other");
  EXPECT_EQ(lines.exit_code, 2);
  expect_says(lines.errors, "expected target too");
}

TEST_F(NewRuns, ImagesWithoutAValSplitTrainUntouched) {
  write_tiny_images(folder_.path(), {.classes = 3, .train = 12, .val = 1});
  fs::rename(folder_.path() / "train", folder_.path() / "colours");
  fs::remove_all(folder_.path() / "val");
  const auto commands = make("images colours --minutes 0.03");
  expect_says(commands[0], "--hold-out 0.1");
  expect_dry_run("colours.toml");
  expect_says(follow(commands), "Acc@1");
  const ImagesManifest manifest = read_images_manifest(folder_.path() / "data/colours");
  EXPECT_EQ(manifest.find_split("val")->images, 3 * 2);  // the first and the eleventh of each class
  EXPECT_EQ(manifest.find_split("train")->images, 3 * 10);
  const auto again = make("images data/colours --minutes 0.03 --out again.toml");
  EXPECT_EQ(again[2], "classify runs/again photo.jpeg");
}

TEST_F(NewRuns, TextsTrainUntouchedAndTheirColumnsAreGuessed) {
  write_tiny_bert(folder_.path(), 2);
  fs::create_directories(folder_.path() / "words");
  write_file(folder_.path() / "words/train.tsv", tiny_texts(90, 1));
  write_file(folder_.path() / "words/validation.tsv", tiny_texts(30, 2));
  const auto commands = make("text words --model model --minutes 0.03");
  expect_says(commands[0], "--text 2 --label 1");
  expect_dry_run("words.toml");
  expect_says(follow(commands), "accuracy");
  const auto again = make("text data/words --model model --minutes 0.03 --out again.toml");
  EXPECT_EQ(again[2], "classify runs/again \"a text\"");
}

TEST_F(NewRuns, RealDataOfEveryKindGetAConfigurationThatReads) {
  const fs::path data = fs::path(LOCKSTEP_SHARED) / "data";
  if (!fs::exists(data)) GTEST_SKIP() << data << " is not there";
  for (const auto& [kind, name, seen] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"translation", "multi30k", "29,000 pairs, en to de"},
           {"translation", "wmt-newstest", "13,573 pairs, en to de"},
           {"translation", "opennmt10k", "9,999 pairs, en to de"},
           {"images", "flowers128", "2,934 images of 5 classes (506 to 718 each), 367 of val"},
           {"text", "sst2", "2 classes: 0 3,310, 1 3,610"},
           {"text", "agnews", "columns: text 2, pair 3, label 1 (guessed"}}) {
    SCOPED_TRACE(name);
    const ProgramResult made =
        run(fmt::format("new {} {} --out {}.toml", kind, (data / name).string(), name));
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    expect_says(made.output, seen);
    expect_dry_run(name + ".toml");
  }
}

}  // namespace
}  // namespace lockstep
