#include "data/lines/line_stream.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "support/expect_error.h"

namespace lockstep {
namespace {

class LineStreamTest : public ::testing::Test {
 protected:
  fs::path file(const std::string& name, const std::string& content) const {
    fs::path path = folder_.path() / name;
    if (path.extension() != ".gz") {
      write_file(path, content);
      return path;
    }
    gzFile out = gzopen(path.c_str(), "wb");
    gzwrite(out, content.data(), static_cast<unsigned>(content.size()));
    gzclose(out);
    return path;
  }
  static std::vector<std::string> lines_of(const fs::path& path) {
    std::vector<std::string> out;
    LineStream stream(path);
    for (std::string_view line; stream.next(line);) out.emplace_back(line);
    EXPECT_EQ(stream.number(), std::ssize(out));
    return out;
  }
  TemporaryFolder folder_;
};

TEST_F(LineStreamTest, GivesLinesWithoutTheirEnds) {
  const std::vector<std::string> expected = {"one", "", "three", "the last"};
  EXPECT_EQ(lines_of(file("lf", "one\n\nthree\nthe last")), expected);
  EXPECT_EQ(lines_of(file("crlf", "one\r\n\r\nthree\r\nthe last\r\n")), expected);
  EXPECT_EQ(lines_of(file("packed.gz", "one\n\nthree\nthe last\n")), expected);
  EXPECT_EQ(lines_of(file("marked", "\xEF\xBB\xBFone\n\nthree\nthe last")), expected);
  EXPECT_TRUE(lines_of(file("empty", "")).empty());
}

TEST_F(LineStreamTest, LinesMayBeLongerThanWhatIsReadAtOnce) {
  const std::string lengthy(700'000, 'x');
  EXPECT_EQ(lines_of(file("long", lengthy + "\nshort\n" + lengthy)),
            (std::vector<std::string>{lengthy, "short", lengthy}));
}

TEST_F(LineStreamTest, ManyLinesComeInTheirOrder) {
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i) + "\n";
  const std::vector<std::string> lines = lines_of(file("many.gz", content));
  ASSERT_EQ(lines.size(), 100'000u);
  for (std::size_t i = 0; i < lines.size(); i += 997) EXPECT_EQ(lines[i], std::to_string(i));
}

TEST_F(LineStreamTest, MayBeLeftAtAnyLine) {
  std::string content;
  for (int i = 0; i < 500'000; ++i) content += "a line\n";
  LineStream stream(file("left", content));
  std::string_view line;
  EXPECT_TRUE(stream.next(line));
}

TEST_F(LineStreamTest, ErrorsNameFileAndPlace) {
  std::string_view line;
  LineStream absent(folder_.path() / "absent");
  EXPECT_ERROR(absent.next(line), DataError, "absent: no such file");

  LineStream latin(file("latin", "good\nna\xEFve\n"));
  EXPECT_TRUE(latin.next(line));
  EXPECT_ERROR(latin.next(line), DataError, "latin:2:3: byte 0xef is not valid UTF-8");

  LineStream wide(file("wide", std::string("\xff\xfe"
                                           "a\0b\0",
                                           6)));
  EXPECT_ERROR(wide.next(line), DataError, "iconv -f utf-16");

  std::string content;
  for (int i = 0; i < 50'000; ++i) content += std::to_string(i * 7919LL) + "\n";
  const fs::path cut = file("cut.gz", content);
  fs::resize_file(cut, fs::file_size(cut) / 2);
  LineStream damaged(cut);
  EXPECT_ERROR(while (damaged.next(line)){}, DataError, "the compressed data end too early");
}

}  // namespace
}  // namespace lockstep
