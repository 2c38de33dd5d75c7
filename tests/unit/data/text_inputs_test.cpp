#include "data/labelled/text_inputs.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/labelled/text_source.h"
#include "support/debian_mirror.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using testing::archive_of;
using testing::Files;

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

TEST_F(TextInputFolders, TakesAnOnlyTableForTrain) {
  touch("reviews.csv");
  touch("LICENSE");
  EXPECT_EQ(found(), "train: reviews.csv\n");
  touch("more.csv");
  EXPECT_ERROR(found(), DataError, "no texts found");
}

// Archives as GLUE, aclImdb and 20 Newsgroups are.
TEST_F(TextInputFolders, ReadsWhatArchivesHold) {
  const auto rows_of = [&](const Files& files) {
    const fs::path archive = folder_.path() / "texts.tar.gz";
    write_file(archive,
               archive_of(files, archive_write_set_format_gnutar, archive_write_add_filter_gzip));
    return TextInputs(archive).read([](const std::vector<TextSplitInput>& splits) {
      std::string out;
      for (const TextSplitInput& split : splits) {
        for (const fs::path& file : split.files) {
          const std::unique_ptr<TextSource> source = open_text_source(file, {});
          while (std::optional<TextSource::Block> block = source->next()) {
            for (const TextRow& row : (*block)()) {
              out += split.name + " " + row.label.value_or("-") + " " + row.text + "\n";
            }
          }
        }
      }
      return out;
    });
  };
  EXPECT_EQ(rows_of({{"SST-2/dev.tsv", "sentence\tlabel\nso so\t0\n"},
                     {"SST-2/original/SOStr.txt", "not read"},
                     {"SST-2/train.tsv", "sentence\tlabel\nvery good\t1\n"},
                     {"__MACOSX/SST-2/._train.tsv", "not read"}}),
            "train 1 very good\nvalidation 0 so so\n");
  EXPECT_EQ(rows_of({{"aclImdb/README", "not read"},
                     {"aclImdb/train/neg/0_3.txt", "bad"},
                     {"aclImdb/train/pos/0_9.txt", "good"},
                     {"aclImdb/train/pos/notes", "not read"},
                     {"aclImdb/train/unsup/0_0.txt", "unknown"},
                     {"aclImdb/train/urls_neg.txt", "not read"}}),
            "train neg bad\ntrain pos good\n");
  EXPECT_EQ(rows_of({{"20news-bydate-test/sci.med/59001", "pills"},
                     {"20news-bydate-train/alt.atheism/51060", "doubts"},
                     {"20news-bydate-train/sci.med/59002", "drops"}}),
            "train alt.atheism doubts\ntrain sci.med drops\ntest sci.med pills\n");
  EXPECT_EQ(rows_of({{"IMDB Dataset.csv", "review,sentiment\n\"fine, really\",positive\n"}}),
            "train positive fine, really\n");
  EXPECT_ERROR(rows_of({{"a.csv", "text,label\nfine\n"}}), DataError,
               "while: reading what was unpacked of " + (folder_.path() / "texts.tar.gz").string());
  EXPECT_ERROR(rows_of({{"../a.csv", "text,label\nfine,1\n"}}), DataError,
               "../a.csv: leads out of the archive");
  EXPECT_FALSE(fs::exists(folder_.path().parent_path() / "a.csv"));
  EXPECT_ERROR(rows_of({{"readme.md", ""}}), DataError, "no texts found");
  EXPECT_ERROR(rows_of({{"readme.md", ""}}), DataError, "while: reading what was unpacked of ");
  EXPECT_FALSE(is_text_name(""));  // as of a path that ends in a slash
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
