#include "base/file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>

#include "base/error.h"
#include "base/output_file.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

TEST(File, ReadsLinesPlainAndCompressed) {
  TemporaryFolder folder;
  std::string content = "one\r\ntwo\n\nlast";
  write_file(folder.path() / "plain", content);
  gzFile gz = gzopen((folder.path() / "packed.gz").c_str(), "wb");
  gzwrite(gz, content.data(), static_cast<unsigned>(content.size()));
  gzclose(gz);
  std::vector<std::string> expected = {"one", "two", "", "last"};
  EXPECT_EQ(read_lines(folder.path() / "plain"), expected);
  EXPECT_EQ(read_lines(folder.path() / "packed.gz"), expected);
}

TEST(File, NamesATruncatedArchive) {
  TemporaryFolder folder;
  fs::path path = folder.path() / "packed.gz";
  gzFile gz = gzopen(path.c_str(), "wb");
  for (int i = 0; i < 20000; ++i) gzprintf(gz, "line %d\n", i * 7919);
  gzclose(gz);
  std::string whole = read_file(path);
  write_file(path, whole.substr(0, whole.size() / 2));
  EXPECT_THROW(read_lines(path), DataError);
}

TEST(File, ReplacesWholeOrNotAtAll) {
  TemporaryFolder folder;
  fs::path path = folder.path() / "f";
  write_file(path, "old");
  write_file(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_THROW(write_file(folder.path() / "absent" / "f", "x"), MachineError);
  EXPECT_THROW(read_file(folder.path() / "absent"), DataError);
  EXPECT_THROW(read_file(folder.path()), DataError);
}

TEST(WriteFailures, SayWhereElseTemporaryFilesCanGo) {
  const TemporaryFolder folder;
  const std::string here = write_failure(folder.path() / "file", ENOSPC).describe();
  EXPECT_NE(here.find("file: cannot be written: No space left on device"), std::string::npos);
  EXPECT_NE(here.find("TMPDIR=FOLDER"), std::string::npos) << here;
  for (const std::string& other : {write_failure("/tmp/runs/file", ENOSPC).describe(),
                                   write_failure(folder.path() / "file", EACCES).describe()}) {
    EXPECT_EQ(other.find("TMPDIR"), std::string::npos) << other;
  }
}

TEST(TemporaryFolders, NameTheVariableThatLeadsNowhere) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/nowhere/at/all", 1);
  EXPECT_ERROR(TemporaryFolder(), MachineError, "TMPDIR = /nowhere/at/all: No such file");
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
}

}  // namespace
}  // namespace lockstep
