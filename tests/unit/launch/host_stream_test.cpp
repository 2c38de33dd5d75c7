#include "launch/fetch/host_stream.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace lockstep {
namespace {

std::string sha_of(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

class HostStreams : public ::testing::Test {
 protected:
  fs::path target() const { return folder_.path() / "deep/file"; }
  static std::string answer(int64_t offset, const std::string& whole) {
    return fmt::format("file 0 {} {} 7 8 {}\n{}", offset, whole.size(), sha_of(whole),
                       whole.substr(static_cast<std::size_t>(offset)));
  }
  TemporaryFolder folder_;
};

TEST_F(HostStreams, AFileThatComesInPiecesIsWhole) {
  HostStream stream({{.path = "file", .target = target()}});
  for (char c : answer(0, "some\nlines\n")) stream.take({&c, 1});
  EXPECT_EQ(stream.answers()[0].state, FileAnswer::State::kWhole);
  EXPECT_EQ(stream.answers()[0].facts, (FileFacts{11, 7, 8}));
  EXPECT_EQ(read_file(target()), "some\nlines\n");
}

TEST_F(HostStreams, WhatIsHereIsNotAskedForAgain) {
  fs::create_directories(target().parent_path());
  write_file(target(), "some\n");
  HostStream stream({{.path = "file", .target = target()}});
  EXPECT_EQ(stream.requests(), "5 0 |file|\n");
  stream.take(answer(5, "some\nlines\n"));
  EXPECT_EQ(stream.answers()[0].state, FileAnswer::State::kWhole);
  EXPECT_EQ(stream.moved_bytes(), 6);
  EXPECT_EQ(read_file(target()), "some\nlines\n");
}

TEST_F(HostStreams, ABeginningThatDiffersIsFoundAndBeginsAnew) {
  fs::create_directories(target().parent_path());
  write_file(target(), "else\n");
  HostStream stream({{.path = "file", .target = target()}});
  stream.take(answer(5, "some\nlines\n"));
  EXPECT_EQ(stream.answers()[0].state, FileAnswer::State::kChanged);
  EXPECT_EQ(HostStream({{.path = "file", .target = target()}}).requests(), "0 0 |file|\n");
}

TEST_F(HostStreams, ADigestThatIsNotTheWantedOneIsNotTaken) {
  HostStream stream({{.path = "file", .target = target(), .sha256 = sha_of("other")}});
  stream.take(answer(0, "some\n"));
  EXPECT_EQ(stream.answers()[0].state, FileAnswer::State::kChanged);
  EXPECT_EQ(stream.answers()[0].sha256, sha_of("some\n"));
}

TEST_F(HostStreams, AFileThatIsGoneIsSaid) {
  HostStream stream({{.path = "file", .target = target()}});
  stream.take("gone 0\n");
  EXPECT_EQ(stream.answers()[0].state, FileAnswer::State::kGone);
}

TEST_F(HostStreams, OtherWordsAreAnError) {
  const auto refuses = [&](const std::string& words) {
    HostStream stream({{.path = "file", .target = target()}});
    EXPECT_ERROR(stream.take(words), DataError, "it sends");
  };
  refuses("Welcome to this host\n");
  refuses("file 9 0 1 2 3 " + sha_of("") + "\n");
  refuses("file 0 4 9 2 3 " + sha_of("") + "\n");
  refuses(std::string(10'000, 'x'));
}

}  // namespace
}  // namespace lockstep
