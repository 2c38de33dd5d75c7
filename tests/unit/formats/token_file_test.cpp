#include "formats/token_file.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "support/expect_error.h"

namespace lockstep {
namespace {

const std::string kModelSha(64, 'a');
using Ids = std::vector<int32_t>;

class TokenFileOnDisk : public ::testing::Test {
 protected:
  fs::path path() const { return folder_.path() / "train.tokens"; }

  void write(int32_t vocab_size) const {
    TokenFileWriter writer(path(), {vocab_size, kModelSha});
    writer.add(Ids{4, vocab_size - 1, 7}, Ids{5});
    writer.add(Ids{}, Ids{});
    writer.add(Ids{0}, Ids{1, 2});
    writer.finish();
  }
  // The file with one byte changed.
  void damage(std::size_t offset, char value) const {
    std::string bytes = read_file(path());
    bytes.at(offset) = value;
    write_file(path(), bytes);
  }
  TemporaryFolder folder_;
};

TEST_F(TokenFileOnDisk, RoundTripsWithNarrowAndWideIds) {
  for (int32_t vocab_size : {6000, 1 << 16, (1 << 16) + 1, 200'000}) {
    write(vocab_size);
    TokenFile file(path());
    ASSERT_EQ(file.pairs(), 3);
    EXPECT_EQ(file.vocab_size(), vocab_size);
    EXPECT_EQ(file.subword_sha256(), kModelSha);
    EXPECT_EQ(file.source(0), (Ids{4, vocab_size - 1, 7}));
    EXPECT_EQ(file.target(0), Ids{5});
    EXPECT_EQ(file.source(1), Ids{});
    EXPECT_EQ(file.target(1), Ids{});
    EXPECT_EQ(file.source(2), Ids{0});
    EXPECT_EQ(file.target(2), (Ids{1, 2}));
    EXPECT_EQ(file.source_length(0), 3);
    EXPECT_EQ(file.target_length(2), 2);
    EXPECT_EQ(file.source_tokens(), 4);
    EXPECT_EQ(file.target_tokens(), 3);
    uint64_t id_bytes = vocab_size <= (1 << 16) ? 2 : 4;
    EXPECT_EQ(fs::file_size(path()), 80 + (7 * id_bytes + 7) / 8 * 8 + 7 * 8);
  }
}

TEST_F(TokenFileOnDisk, HoldsNoPairsWhenNoneWasAdded) {
  TokenFileWriter writer(path(), {10, kModelSha});
  writer.finish();
  EXPECT_EQ(TokenFile(path()).pairs(), 0);
}

TEST_F(TokenFileOnDisk, AppearsOnlyWhenItIsFinished) {
  {
    TokenFileWriter writer(path(), {10, kModelSha});
    writer.add(Ids{1}, Ids{2});
    EXPECT_FALSE(fs::exists(path()));
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));  // and what was begun is gone
}

TEST_F(TokenFileOnDisk, RefusesIdsOutsideTheVocabulary) {
  TokenFileWriter writer(path(), {10, kModelSha});
  EXPECT_THROW(writer.add(Ids{10}, Ids{}), std::invalid_argument);
  EXPECT_THROW(writer.add(Ids{}, Ids{-1}), std::invalid_argument);
}

TEST_F(TokenFileOnDisk, RefusesEveryShorterOrLongerFile) {
  write(6000);
  std::string whole = read_file(path());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file(path(), whole.substr(0, size));
    EXPECT_THROW(TokenFile file(path()), DataError) << size;
  }
  write_file(path(), whole + "x");
  EXPECT_ERROR(TokenFile file(path()), DataError, "damaged: has");
}

TEST_F(TokenFileOnDisk, SaysWhatIsDamaged) {
  write(6000);
  damage(0, 'X');
  EXPECT_ERROR(TokenFile file(path()), DataError, "not a token file");
  write(6000);
  damage(8, 2);
  EXPECT_ERROR(TokenFile file(path()), DataError, "version 2");
  write(6000);
  damage(12, 4);
  EXPECT_ERROR(TokenFile file(path()), DataError, "4 bytes an id, expected 2");
  write(6000);
  damage(23, 0x7f);  // pairs: an enormous number
  EXPECT_ERROR(TokenFile file(path()), DataError, "damaged");
  write(6000);
  damage(80 + 16 + 8, 100);  // end of the first sentence
  EXPECT_ERROR(TokenFile file(path()), DataError, "pair 0 reaches from token 0 to 100");
  write(6000);
  damage(80 + 1, 0x7f);  // the first id
  TokenFile file(path());
  EXPECT_ERROR(file.source(0), DataError, "the vocabulary ends at 5999");
}

}  // namespace
}  // namespace lockstep
