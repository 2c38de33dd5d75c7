// Parquet files that pyarrow wrote, as Hugging Face keeps data sets.
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/images/image_set.h"
#include "data/images/prepare_images.h"
#include "data/labelled/prepare_labelled.h"
#include "data/labelled/table_pairs.h"
#include "data/labelled/text_set.h"
#include "formats/parquet_file.h"
#include "support/expect_error.h"
#include "support/python.h"

namespace lockstep {
namespace {

class ParquetSets : public ::testing::Test {
 protected:
  void write(const char* kind) {
    PythonResult made =
        run_parity_script("parquet_files.py", fmt::format("'{}' {}", in().string(), kind));
    ASSERT_EQ(made.status, 0) << made.errors;
  }
  fs::path in() const { return folder_.path() / "in"; }
  fs::path out() const { return folder_.path() / "out"; }
  TemporaryFolder folder_;
};

TEST_F(ParquetSets, OfTextsBecomeIds) {
  if (!has_parquet()) GTEST_SKIP() << "built without Arrow (pip install pyarrow)";
  if (!python_has("pyarrow")) GTEST_SKIP() << "no pyarrow for " << LOCKSTEP_PYTHON;
  write("texts");
  write_file(folder_.path() / "vocab.txt",
             "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ntext\npair\ncafe\n");
  PrepareLabelledOptions options{
      .input = in(), .out = out(), .vocabulary = folder_.path() / "vocab.txt"};
  const TextManifest manifest = prepare_labelled(options);
  EXPECT_EQ(manifest.classes, (std::vector<std::string>{"no", "maybe", "yes"}));
  EXPECT_EQ(manifest.columns.text, "premise");
  EXPECT_EQ(manifest.columns.pair, "hypothesis");
  const TextSet train(out(), "train");
  EXPECT_EQ(train.size(), 3500);
  EXPECT_EQ(TextSet(out(), "validation").size(), 10);
  std::vector<int64_t> ids(static_cast<std::size_t>(train.file().length(3444)));
  train.file().read(3444, ids.data());
  EXPECT_EQ(ids, (std::vector<int64_t>{2, 5, 1, 7, 3, 6, 1, 3}));
  for (int64_t i : {0, 1, 2, 2999, 3000, 3499}) EXPECT_EQ(train.file().label(i), i % 3);

  options.splits = {{"train", {in() / "null.parquet"}}};
  options.out = folder_.path() / "other";
  EXPECT_ERROR(prepare_labelled(options), DataError, "null.parquet: row 3: \"premise\" is null");
  options.columns.wanted.text = "idx";
  EXPECT_ERROR(prepare_labelled(options), DataError,
               "column \"idx\" is of type int32, expected string");
  options.columns.wanted.text = "premis";
  EXPECT_ERROR(prepare_labelled(options), DataError, "did you mean premise?");
}

TEST_F(ParquetSets, OfImagesBecomeShards) {
  if (!has_parquet()) GTEST_SKIP() << "built without Arrow (pip install pyarrow)";
  if (!python_has("pyarrow")) GTEST_SKIP() << "no pyarrow for " << LOCKSTEP_PYTHON;
  if (!python_has("PIL")) GTEST_SKIP() << "no Pillow for " << LOCKSTEP_PYTHON;
  write("images");
  const ImagesManifest manifest = prepare_images({.input = in(), .out = out()});
  EXPECT_EQ(manifest.classes, (std::vector<std::string>{"cat", "dog"}));
  const auto train = open_image_set(out(), "train");
  EXPECT_EQ(train->size(), 6);
  EXPECT_EQ(train->label(5), 1);
  EXPECT_EQ(train->name(5), "train/dog/train-00000-of-00001-00000006.jpg");
  EXPECT_EQ(open_image_set(out(), "test")->size(), 6);
}

TEST_F(ParquetSets, OfTranslationsBecomeLines) {
  if (!has_parquet()) GTEST_SKIP() << "built without Arrow (pip install pyarrow)";
  if (!python_has("pyarrow")) GTEST_SKIP() << "no pyarrow for " << LOCKSTEP_PYTHON;
  write("pairs");
  const fs::path table = in() / "train.parquet";
  const ParallelFiles to{folder_.path() / "a.en", folder_.path() / "a.de"};
  const TablePairs pairs = write_table_pairs({table}, {{"en", "de"}, {}}, to);
  EXPECT_EQ(pairs.columns.text, "translation.en");
  EXPECT_EQ(pairs.pairs, 1500);
  EXPECT_EQ(read_lines(to.source).at(1400), "house 1400");
  EXPECT_EQ(read_lines(to.target).at(1400), "Haus 1400");
  EXPECT_ERROR(write_table_pairs({table}, {{"en", "fr"}, {}}, to), DataError,
               "it has translation.en, translation.de, id");
}

}  // namespace
}  // namespace lockstep
