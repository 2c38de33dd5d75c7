#include "data/labelled/text_inputs.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

TEST(TextInputs, KnowsSplitsByTheirNames) {
  EXPECT_EQ(text_split_of_name("train.tsv.gz"), "train");
  EXPECT_EQ(text_split_of_name("train-00000-of-00002.parquet"), "train");
  EXPECT_EQ(text_split_of_name("sst2_train.csv"), "train");
  EXPECT_EQ(text_split_of_name("dev.jsonl"), "validation");
  EXPECT_EQ(text_split_of_name("val"), "validation");
  EXPECT_EQ(text_split_of_name("dev_matched.tsv"), "validation_matched");
  EXPECT_EQ(text_split_of_name("validation_mismatched-00000-of-00001.parquet"),
            "validation_mismatched");
  EXPECT_EQ(text_split_of_name("test.json"), "test");
  EXPECT_EQ(text_split_of_name("classes.txt"), "");
  EXPECT_EQ(text_split_of_name("training_notes.csv"), "");
}

class TextInputFolders : public ::testing::Test {
 protected:
  void touch(const char* name) {
    fs::create_directories((folder_.path() / name).parent_path());
    write_file(folder_.path() / name, "");
  }
  std::string found() const {
    std::string out;
    for (const TextSplitInput& split : find_text_inputs(folder_.path())) {
      out += split.name + ":";
      for (const fs::path& file : split.files) {
        out += " " + file.lexically_relative(folder_.path()).string();
      }
      out += "\n";
    }
    return out;
  }
  TemporaryFolder folder_;
};

TEST_F(TextInputFolders, TakesTrainFirstAndShardsInOrder) {
  for (const char* name : {"test.parquet", "train-00001-of-00002.parquet", "README.md",
                           "train-00000-of-00002.parquet", "dev.parquet"}) {
    touch(name);
  }
  EXPECT_EQ(found(),
            "train: train-00000-of-00002.parquet train-00001-of-00002.parquet\n"
            "validation: dev.parquet\ntest: test.parquet\n");
}

TEST_F(TextInputFolders, LooksOneFolderDeeper) {
  touch("data/train.csv");
  touch("other/notes.csv");
  EXPECT_EQ(found(), "train: data/train.csv\n");
  touch("other/test.csv");
  EXPECT_ERROR(found(), DataError, "hold texts; name one of them");
}

TEST_F(TextInputFolders, SaysWhatItCannotTakeApart) {
  EXPECT_ERROR(found(), DataError, "no texts found");
  touch("train.csv");
  touch("train.jsonl");
  EXPECT_ERROR(found(), DataError,
               "both train.csv and train.jsonl are named after the split train");
  EXPECT_ERROR(find_text_inputs(folder_.path() / "none"), DataError, "no such file or folder");
}

}  // namespace
}  // namespace lockstep
