#include "base/large_file.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

std::string noise(std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(mix64(i / 8) >> (i % 8 * 8));
  return out;
}

// Blocks of 4 MiB go past the cache, the rest does not: sizes on either side of each bound.
TEST(LargeFile, HoldsWhatWasWrittenWithItsDigest) {
  constexpr std::size_t kBlock = 4 << 20;
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "file";
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kBlock - 1, kBlock, kBlock + 1,
                                 2 * kBlock, 2 * kBlock + 4096, 3 * kBlock + 7}) {
    const std::string content = noise(size);
    LargeFile file(path);
    for (std::size_t at = 0; at < size; at += 1'000'003) {
      file.write(content.data() + at, std::min<std::size_t>(1'000'003, size - at));
    }
    const WrittenFile written = file.finish();
    EXPECT_EQ(written.bytes, static_cast<int64_t>(size));
    const std::string found = read_file(path);
    EXPECT_TRUE(found == content) << size;
    EXPECT_EQ(written.sha256, sha256_of_file(path)) << size;
    EXPECT_FALSE(fs::exists(folder.path() / "file.tmp"));
  }
}

TEST(LargeFile, LeavesTheOldFileWhereItIsNotFinished) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "file";
  write_file(path, "old");
  {
    LargeFile file(path);
    file.write("new", 3);
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_FALSE(fs::exists(folder.path() / "file.tmp"));
}

TEST(LargeFile, NamesWhatTheSystemRefuses) {
  const TemporaryFolder folder;
  EXPECT_ERROR(LargeFile(folder.path() / "none" / "file"), MachineError, "cannot be created");
}

}  // namespace
}  // namespace lockstep
