#include "base/file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(File, HashesAsTheStandardsExamples) {
  auto hash = [](const std::string& s) { return sha256_hex(std::as_bytes(std::span(s))); };
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

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

}  // namespace
}  // namespace lockstep
