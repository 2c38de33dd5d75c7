#include "data/fetch/download.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <chrono>

#include "base/digest.h"
#include "support/expect_error.h"
#include "support/local_server.h"

namespace lockstep {
namespace {

class Downloads : public ::testing::Test {
 protected:
  Downloads() {
    fs::create_directories(served());
    std::string content;
    for (int i = 0; content.size() < 300'000; ++i) content += std::to_string(i * 7919) + "\n";
    write_file(served() / "file", content);
    write_file(served() / "other", "another version" + content);
  }

  fs::path served() const { return folder_.path() / "served"; }
  fs::path target() const { return folder_.path() / "here"; }
  fs::path part() const { return folder_.path() / "here.part"; }
  std::string content() const { return read_file(served() / "file"); }
  FileCheck check() const { return {.sha256 = sha256_of_file(served() / "file")}; }

  void fetch(const LocalServer& server, const FileCheck& check = {},
             const std::string& name = "file") const {
    download({server.url() + "/" + name, target(), check, {}},
             {.attempts = 3,
              .first_pause = std::chrono::milliseconds(1),
              .stall_timeout = std::chrono::seconds(1)});
  }
  void expect_whole() const {
    EXPECT_EQ(read_file(target()), content());
    EXPECT_FALSE(fs::exists(part()));
    EXPECT_FALSE(fs::exists(folder_.path() / "here.part.mark"));
  }

  TemporaryFolder folder_;
};

TEST_F(Downloads, GiveTheFileAndNoRemains) {
  LocalServer server(served());
  fetch(server, check());
  expect_whole();
  fetch(server, check());  // is there: the server is not asked again
  EXPECT_EQ(server.requests().size(), 1u);
  write_file(target(), "damaged");
  EXPECT_ERROR(fetch(server, check()), DataError, "wrong checksum");
}

TEST_F(Downloads, GoOnWhereTheLineWasCut) {
  LocalServer server(served(), R"({"file": [{"cut": 100000}, {"cut": 50000}, {"cut": 1}]})");
  fetch(server);
  expect_whole();
  std::vector<std::string> requests = server.requests();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_TRUE(requests[1].starts_with("GET /file bytes=100000- \"")) << requests[1];
  EXPECT_TRUE(requests[3].starts_with("GET /file bytes=150001- \"")) << requests[3];
  EXPECT_TRUE(requests[3].ends_with(" 206"));
}

TEST_F(Downloads, AreTakenUpByALaterCall) {
  LocalServer server(served(),
                     R"({"file": [{"cut": 100000}, {"cut": 0}, {"cut": 0}, {"cut": 0}]})");
  EXPECT_ERROR(fetch(server), MachineError, "not fetched after 3 attempts");
  EXPECT_FALSE(fs::exists(target()));
  EXPECT_EQ(fs::file_size(part()), 100'000u);
  fetch(server);
  expect_whole();
  EXPECT_TRUE(server.requests().back().starts_with("GET /file bytes=100000- "));
}

TEST_F(Downloads, StartAgainWhenTheServerHasAnotherVersion) {
  LocalServer server(served(), R"({"file": [{"cut": 100000}, {"swap": "other"}]})");
  fetch(server);
  EXPECT_EQ(read_file(target()), read_file(served() / "other"));
}

TEST_F(Downloads, StartAgainWhenTheServerKnowsNoRanges) {
  LocalServer server(served(), R"({"file": [{"cut": 100000}, {"ignore_range": true}]})");
  fetch(server, check());
  expect_whole();
}

TEST_F(Downloads, FromAServerWithoutMarksAreNotMixed) {
  // Without a checksum nothing would tell two versions apart: a later call begins at 0.
  const char* faults = R"({"file": [{"cut": 100000, "no_marks": true}, {"cut": 0}, {"cut": 0},
                                    {"cut": 0}, {"no_marks": true}]})";
  LocalServer server(served(), faults);
  EXPECT_ERROR(fetch(server), MachineError, "not fetched");
  fetch(server);
  expect_whole();
  EXPECT_TRUE(server.requests().back().starts_with("GET /file - - 200"));
}

TEST_F(Downloads, MadeOfPiecesThatDoNotFitAreFetchedWhole) {
  write_file(part(), std::string(1000, '?'));  // not of this file
  LocalServer server(served());
  fetch(server, check());
  expect_whole();
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(Downloads, EndAStalledLine) {
  LocalServer server(served(), R"({"file": [{"stall": 100000}]})");
  auto start = std::chrono::steady_clock::now();
  fetch(server, check());
  expect_whole();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST_F(Downloads, TryAgainWhenTheServerIsBusyAndNotWhenThereIsNothing) {
  LocalServer server(served(), R"({"file": [{"status": 503, "retry_after": 0}, {"status": 429}]})");
  fetch(server, check());
  expect_whole();
  fs::remove(target());
  EXPECT_ERROR(fetch(server, {}, "absent"), DataError, "the server answers 404");
  EXPECT_EQ(server.requests().size(), 4u);
}

TEST_F(Downloads, RefuseWhatIsNotAskedFor) {
  LocalServer server(served(), R"({"file": [{}, {}, {}, {"cut": 1000}, {"shift": -5}]})");
  EXPECT_ERROR(fetch(server, {.bytes = 5}), DataError, "expected 5");
  EXPECT_ERROR(fetch(server, {.sha256 = std::string(64, '0')}), DataError, "wrong checksum");
  EXPECT_ERROR(fetch(server, {.md5 = std::string(32, '0')}), DataError, "MD5");
  EXPECT_FALSE(fs::exists(target()));
  EXPECT_ERROR(fetch(server), DataError, "the server sends from byte 995, asked for 1000");
}

TEST_F(Downloads, SayWhatIsWrongWithAnAddress) {
  EXPECT_ERROR(download({"ftp://127.0.0.1/x", target(), {}, {}}, {.attempts = 1}), ConfigError,
               "not a URL of http or https");
  // Port 1 of this machine: nobody listens.
  EXPECT_ERROR(download({"http://127.0.0.1:1/x", target(), {}, {}}, {.attempts = 1}), MachineError,
               "not fetched after 1 attempts");
}

TEST_F(Downloads, KeepWhatCameWhenTheDiskIsFull) {
  fs::path small = folder_.path() / "small";
  fs::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=128k") != 0) {
    GTEST_SKIP() << "needs root: a small file system to fill";
  }
  LocalServer server(served());
  DownloadOptions options{.attempts = 3, .first_pause = std::chrono::milliseconds(1)};
  EXPECT_ERROR(download({server.url() + "/file", small / "here", {}, {}}, options), MachineError,
               "No space left on device");
  EXPECT_GT(fs::file_size(small / "here.part"), 60'000u);
  ::umount(small.c_str());
}

}  // namespace
}  // namespace lockstep
