#include "base/known_hashes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/digest.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

// Makes the file older than the times that may still change unseen.
void write_old_file(const fs::path& path, const std::string& text) {
  write_file(path, text);
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
}

class KnownHashesTest : public ::testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "file"; }
  fs::path cache() const { return folder_.path() / "deep/cache/hashes"; }
  TemporaryFolder folder_;
};

TEST_F(KnownHashesTest, ReadsAFileOnceUntilItChanges) {
  write_old_file(file(), "one");
  const std::string one = sha256_of_file(file());
  std::this_thread::sleep_for(std::chrono::milliseconds(2200));  // the inode's own time settles
  {
    KnownHashes hashes(cache());
    EXPECT_EQ(hashes.sha256(file()), one);
    EXPECT_EQ(hashes.bytes_read(), 3);
    EXPECT_EQ(hashes.sha256(file()), one);
    EXPECT_EQ(hashes.bytes_read(), 3);
  }
  KnownHashes again(cache());
  EXPECT_EQ(again.sha256(file()), one);
  EXPECT_EQ(again.bytes_read(), 0);
  write_old_file(file(), "two");  // as long as before
  EXPECT_EQ(again.sha256(file()), sha256_of_file(file()));
  EXPECT_EQ(again.bytes_read(), 3);
}

TEST_F(KnownHashesTest, TrustsNoFileThatWasWrittenJustNow) {
  write_file(file(), "one");
  KnownHashes hashes(cache());
  hashes.sha256(file());
  hashes.sha256(file());
  EXPECT_EQ(hashes.bytes_read(), 6);
}

TEST_F(KnownHashesTest, LivesWithoutACacheAndWithADamagedOne) {
  write_file(file(), "one");
  KnownHashes none{fs::path()};
  EXPECT_EQ(none.sha256(file()), sha256_of_file(file()));
  fs::create_directories(cache().parent_path());
  write_file(cache(), "no such line\n0 1 2\n\n");
  KnownHashes damaged(cache());
  EXPECT_EQ(damaged.sha256(file()), sha256_of_file(file()));
  EXPECT_ERROR(damaged.sha256(folder_.path() / "no"), DataError, "cannot be read");
}

}  // namespace
}  // namespace lockstep
