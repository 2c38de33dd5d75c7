#include "base/output_file.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(OutputFile, KeepsTheOrderOfSmallLargeAndReplacedPieces) {
  TemporaryFolder folder;
  const fs::path path = folder.path() / "f";
  const std::string large(600'000, 'L'), some(200'000, 's');  // above its buffer, and below
  {
    OutputFile file(path);
    file.write("head ");
    file.write(large);
    for (int i = 0; i < 3; ++i) file.write(some);
    file.rewrite(0, "HEAD", 4);
    file.rewrite(5, "ll", 2);
    file.write(" tail");
    EXPECT_FALSE(fs::exists(path));
    file.finish();
  }
  std::string expected = "HEAD " + large + some + some + some + " tail";
  expected.replace(5, 2, "ll");
  EXPECT_TRUE(read_file(path) == expected);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(OutputFile, LeavesNothingWhereItWasNotFinished) {
  TemporaryFolder folder;
  write_file(folder.path() / "f", "before");
  { OutputFile(folder.path() / "f").write("half"); }
  EXPECT_EQ(read_file(folder.path() / "f"), "before");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(OutputFile, NamesTheFileThatADiskRefuses) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  TemporaryFolder folder;
  fs::create_symlink("/dev/full", folder.path() / "f.tmp");
  OutputFile file(folder.path() / "f");
  file.write("text");
  try {
    file.finish();
    FAIL() << "it was written";
  } catch (const MachineError& error) {
    EXPECT_EQ(std::string(error.what()),
              (folder.path() / "f").string() + ": cannot be written: No space left on device");
  }
}

}  // namespace
}  // namespace lockstep
