#include "formats/text_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

using Ids = std::vector<int32_t>;

const std::string kHash(64, 'a');

class TextFiles : public ::testing::Test {
 protected:
  fs::path path() const { return folder_.path() / "train.texts"; }

  void write(const TextFileInfo& info) {
    TextFileWriter writer(path(), info);
    const Ids first{2, 7, 8, 3}, second{2, 9, 3, 5, 6, 3};
    writer.add({.ids = first, .second_begin = 4, .label = 1, .value = 0.5f});
    writer.add({.ids = second, .second_begin = 3, .label = 0, .value = -2.25f});
    writer.finish();
  }
  // The file with `bytes` at `offset` replaced.
  void damage(std::size_t offset, const std::string& bytes) {
    std::string content = read_file(path());
    content.replace(offset, bytes.size(), bytes);
    write_file(path(), content);
  }
  static Ids ids(const TextFile& file, int64_t i) {
    std::vector<int64_t> wide(static_cast<std::size_t>(file.length(i)));
    file.read(i, wide.data());
    return {wide.begin(), wide.end()};
  }

  TemporaryFolder folder_;
};

TEST_F(TextFiles, GivesBackWhatWasWritten) {
  for (int32_t vocab_size : {10, 70'000}) {  // ids of 2 and of 4 bytes
    write({.vocab_size = vocab_size,
           .vocab_sha256 = kHash,
           .label_kind = LabelKind::kClass,
           .classes = 2});
    const TextFile file(path());
    EXPECT_EQ(file.size(), 2);
    EXPECT_EQ(file.tokens(), 10);
    EXPECT_EQ(file.info().vocab_size, vocab_size);
    EXPECT_EQ(file.info().vocab_sha256, kHash);
    EXPECT_EQ(file.info().classes, 2);
    EXPECT_EQ(ids(file, 0), (Ids{2, 7, 8, 3}));
    EXPECT_EQ(ids(file, 1), (Ids{2, 9, 3, 5, 6, 3}));
    EXPECT_EQ(file.second_begin(0), 4);
    EXPECT_EQ(file.second_begin(1), 3);
    EXPECT_EQ(file.label(0), 1);
    EXPECT_EQ(file.label(1), 0);
    EXPECT_TRUE(std::isnan(file.value(0)));
  }
}

TEST_F(TextFiles, HoldsValuesOrNoLabelsToo) {
  write({.vocab_size = 10, .vocab_sha256 = kHash, .label_kind = LabelKind::kValue});
  EXPECT_EQ(TextFile(path()).value(1), -2.25f);
  EXPECT_EQ(TextFile(path()).label(1), -1);
  write({.vocab_size = 10, .vocab_sha256 = kHash});
  EXPECT_EQ(TextFile(path()).label(0), -1);
}

TEST_F(TextFiles, NumbersLabelsAnewOrDropsThem) {
  const Ids ids{2, 3};
  {
    TextFileWriter writer(
        path(), {.vocab_size = 10, .vocab_sha256 = kHash, .label_kind = LabelKind::kClass});
    for (int32_t label : {0, 1, 2}) writer.add({.ids = ids, .second_begin = 2, .label = label});
    EXPECT_THROW(writer.finish(), std::invalid_argument);  // no class is known
    writer.relabel(Ids{2, 0, 1}, 3);
    writer.finish();
  }
  const TextFile file(path());
  EXPECT_EQ(file.label(0), 2);
  EXPECT_EQ(file.label(1), 0);
  EXPECT_EQ(file.label(2), 1);
  {
    TextFileWriter writer(
        path(), {.vocab_size = 10, .vocab_sha256 = kHash, .label_kind = LabelKind::kClass});
    writer.add({.ids = ids, .second_begin = 2, .label = 5});
    writer.drop_labels();
    writer.finish();
  }
  EXPECT_EQ(TextFile(path()).info().label_kind, LabelKind::kNone);
}

TEST_F(TextFiles, RefusesIdsThatTheVocabularyLacks) {
  TextFileWriter writer(path(), {.vocab_size = 10, .vocab_sha256 = kHash});
  EXPECT_THROW(writer.add({.ids = Ids{2, 10, 3}, .second_begin = 3}), std::invalid_argument);
}

TEST_F(TextFiles, IsAbsentUntilItIsWhole) {
  TextFileWriter writer(path(), {.vocab_size = 10, .vocab_sha256 = kHash});
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(TextFiles, SaysWhatIsDamaged) {
  const TextFileInfo info{
      .vocab_size = 10, .vocab_sha256 = kHash, .label_kind = LabelKind::kClass, .classes = 2};
  auto expect = [&](std::size_t offset, const std::string& bytes, const char* words) {
    write(info);
    damage(offset, bytes);
    EXPECT_ERROR(TextFile{path()}, DataError, words);
  };
  expect(0, "LSTOKENS", "not a file of texts");
  expect(8, "\x02", "format version 2, this program reads version 1");
  expect(16, "\x03", "damaged: has");           // examples
  expect(36, "\x07", "labels of kind");         // no such kind
  expect(80 + 24, "\x01", "damaged: example");  // where the first example ends
  expect(80 + 24 + 8, "\x09", "its second text 9");
  expect(80 + 24 + 12, "\x02", "has the label 2 of 2 classes");
  write(info);
  fs::resize_file(path(), 100);
  EXPECT_ERROR(TextFile{path()}, DataError, "has 100 bytes");
  fs::resize_file(path(), 20);
  EXPECT_ERROR(TextFile{path()}, DataError, "starts with 80");
  write(info);
  damage(80 + 2, "\x0b");  // an id
  const TextFile file(path());
  EXPECT_ERROR(ids(file, 0), DataError, "example 0 has token 11, the vocabulary ends at 9");
}

}  // namespace
}  // namespace lockstep
