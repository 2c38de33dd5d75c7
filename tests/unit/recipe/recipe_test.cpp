#include "recipe/recipe.h"

#include <gtest/gtest.h>

#include "recipe/run_names.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

TEST(Recipe, WritesSectionsWithReasonsAboveTheirKeys) {
  Recipe recipe;
  recipe.say("Two words.");
  recipe.say("  lockstep train x.toml");
  recipe.set("run.folder", "runs/x");
  recipe.set("model.d_model", 256, "Because.");
  recipe.set("model.heads", 4);
  recipe.set("evaluation.metrics", std::vector<std::string>{"bleu", "chrf"});
  recipe.set("model.dropout", 0.1);  // goes to its section
  EXPECT_EQ(recipe.to_toml(),
            "# Two words.\n#   lockstep train x.toml\n\n[run]\nfolder = \"runs/x\"\n\n[model]\n"
            "# Because.\nd_model = 256\nheads = 4\ndropout = 0.1\n\n[evaluation]\nmetrics = "
            "[\"bleu\", \"chrf\"]"
            "\n");
  EXPECT_EQ(recipe.get<int64_t>("model.heads"), 4);
  EXPECT_FALSE(recipe.find("model.layers"));
}

TEST(Recipe, WrapsReasonsAtAHundredColumns) {
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word" + std::to_string(i) + " ";
  const std::string out = wrapped_comment(words);
  std::size_t longest = 0, begin = 0;
  for (std::size_t end; (end = out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_TRUE(out.substr(begin).starts_with("# word"));
    longest = std::max(longest, end - begin);
  }
  EXPECT_LE(longest, 100u);
  EXPECT_GE(longest, 90u);
}

TEST(RunNames, ComeFromTheDataAndNeverFromWhatIsThere) {
  TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  fs::create_directories("my data");
  fs::create_directories("runs/flowers-2");
  write_file("train.en.gz", "");
  RunNames names = choose_names("my data/", "", false);
  EXPECT_EQ(names.config, "my-data.toml");
  EXPECT_EQ(names.data, "data/my-data");
  EXPECT_EQ(choose_names("train.en.gz", "", false).run, "runs/train");
  fs::create_directories("runs/flowers");
  fs::create_directories("data/flowers");
  names = choose_names("data/flowers", "", false);
  EXPECT_EQ(names.run, "runs/flowers-3");
  EXPECT_EQ(names.data, "data/flowers-2");
  names = choose_names("data/flowers/", "configs/mine.toml", true);
  EXPECT_EQ(names.config, "configs/mine.toml");
  EXPECT_EQ(names.data, "data/flowers/");
  EXPECT_EQ(names.run, "runs/mine");
  require_no_file("mine.toml");
  write_file("mine.toml", "");
  EXPECT_ERROR(require_no_file("mine.toml"), ConfigError, "--out FILE.toml");
  fs::current_path(before);
}

TEST(RunNames, WordsWithOddCharactersStandInQuotes) {
  EXPECT_EQ(command_line({"lockstep", "prepare", "my data", "it's"}),
            "lockstep prepare 'my data' 'it'\\''s'");
}

}  // namespace
}  // namespace lockstep
