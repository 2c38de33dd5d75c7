#include "launch/processes/rank_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <termios.h>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {
namespace {

std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  auto add = [&](std::string_view line) { lines.emplace_back(line); };
  LineSplitter splitter;
  for (const std::string& piece : pieces) splitter.take(piece, add);
  splitter.end(add);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineSplitter, JoinsPiecesAndKeepsALastLineWithoutItsEnd) {
  EXPECT_EQ(lines_of({"on", "e\ntw", "o\n\nthree"}), (Lines{"one", "two", "", "three"}));
  EXPECT_EQ(lines_of({"one\n"}), Lines{"one"});
  EXPECT_EQ(lines_of({""}), Lines{});
}

TEST(LineSplitter, KeepsWhatATerminalWouldShowAfterCarriageReturns) {
  EXPECT_EQ(lines_of({"10 %\r50 %\r100 %\ndone\r\n"}), (Lines{"100 %", "done"}));
  EXPECT_EQ(lines_of({"win\r", "\n"}), Lines{"win"}) << "CR LF may come in two pieces";
  EXPECT_EQ(lines_of({"\rstep 1\rstep 2\r"}), Lines{"step 2"});
}

TEST(LineSplitter, CutsEndlessLines) {
  Lines lines = lines_of({std::string(200000, 'x')});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].size(), 65536u);
}

// Shows into files, so that what was shown can be read back.
class Console {
 public:
  explicit Console(const fs::path& folder) {
    for (int i : {0, 1}) {
      paths_[i] = folder / ("console" + std::to_string(i));
      files_[i] = Descriptor(::open(paths_[i].c_str(), O_CREAT | O_WRONLY, 0600));
    }
  }
  std::array<int, 2> descriptors() const { return {files_[0].get(), files_[1].get()}; }
  std::string shown(Stream stream) const { return read_file(paths_[stream]); }

 private:
  fs::path paths_[2];
  Descriptor files_[2];
};

TEST(RankOutput, MarksTheLinesOfOtherRanksAndNeverMixesLines) {
  TemporaryFolder folder;
  Console console(folder.path());
  RankOutput output(2, {.descriptors = console.descriptors(), .folder = {}});
  output.take(0, kStandardOutput, "ze");
  output.take(1, kStandardOutput, "one\nGr\xC3");
  output.take(0, kStandardOutput, "ro\n");
  output.take(1, kStandardOutput,
              "\xBC\xC3\x9F"
              "e \xFF!\n");
  output.take(1, kStandardError, "bad");
  output.end(1, kStandardError);
  EXPECT_EQ(console.shown(kStandardOutput), "[rank 1] one\nzero\n[rank 1] Grüße \uFFFD!\n");
  EXPECT_EQ(console.shown(kStandardError), "[rank 1] bad\n");
  EXPECT_EQ(output.last_lines(1), (std::deque<std::string>{"one", "Grüße \uFFFD!", "bad"}));
}

TEST(RankOutput, RemembersOnlyTheNewestLines) {
  TemporaryFolder folder;
  Console console(folder.path());
  RankOutput output(1, {.descriptors = console.descriptors(), .folder = {}});
  for (int i = 0; i < 100; ++i) output.take(0, kStandardError, std::to_string(i) + "\n \n");
  EXPECT_EQ(output.last_lines(0).size(), 12u);
  EXPECT_EQ(output.last_lines(0).back(), "99");
}

TEST(RankOutput, FilesEveryByteAndNeverOverwritesAFile) {
  TemporaryFolder folder;
  Console console(folder.path());
  RankOutput::Options options{console.descriptors(), folder.path() / "a" / "b"};
  RankOutput output(2, options);
  output.take(1, kStandardOutput, "1 %\r2 %\xFF");
  EXPECT_EQ(read_file(options.folder / "rank01.out"), "1 %\r2 %\xFF");
  EXPECT_EQ(read_file(options.folder / "rank00.err"), "");
  EXPECT_THROW(RankOutput(2, options), ConfigError);
  options.folder = "/proc/none";
  EXPECT_THROW(RankOutput(2, options), MachineError);
}

TEST(RankOutput, PutsOtherRanksAboveTheProgressLineOnATerminal) {
  int ours = -1, theirs = -1;
  ASSERT_EQ(::openpty(&ours, &theirs, nullptr, nullptr, nullptr), 0);
  termios mode{};
  ::tcgetattr(theirs, &mode);
  ::cfmakeraw(&mode);
  ::tcsetattr(theirs, TCSANOW, &mode);
  Descriptor master(ours), slave(theirs);
  RankOutput output(2, {.descriptors = {theirs, theirs}, .folder = {}});
  ASSERT_TRUE(output.on_terminal(kStandardError));
  output.take(0, kStandardError, "\rstep 1\rstep 2");
  output.take(1, kStandardOutput, "hello\n");
  output.take(0, kStandardError, "\rstep 3\n");
  output.take(1, kStandardOutput, "bye\n");
  const std::string expected =
      "\rstep 1\rstep 2"
      "\r\x1b[K[rank 1] hello\n\rstep 2"
      "\rstep 3\n"
      "[rank 1] bye\n";
  std::string seen;  // the terminal hands on what was written when it likes
  pollfd ready{.fd = ours, .events = POLLIN, .revents = 0};
  while (seen.size() < expected.size() && ::poll(&ready, 1, 5000) == 1) {
    char bytes[1000];
    ssize_t size = ::read(ours, bytes, sizeof bytes);
    ASSERT_GT(size, 0);
    seen.append(bytes, static_cast<std::size_t>(size));
  }
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace lockstep
