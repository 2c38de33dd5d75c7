#include "formats/span_file.h"

#include <gtest/gtest.h>

#include <string>

#include "support/expect_error.h"

namespace lockstep {
namespace {

constexpr double kStart = 1.7e9;

SpanFile two_ranks() {
  SpanFile out;
  out.first_step = 40;
  out.last_step = 41;
  RankSpans first;
  first.host = "node \"1\"";
  first.process = 123;
  first.names = {"forward", "gradient bucket 0"};
  first.spans = {{SpanRow::kPhases, 0, 40, kStart + 0.25, 0.125, 0},
                 {SpanRow::kExchange, 1, 40, kStart + 0.5, 1.5e-6, 1 << 20}};
  RankSpans second;
  second.rank = 1;
  second.host = "b";
  second.clock_offset = -0.0125;
  second.clock_uncertainty = 0.00025;
  out.ranks = {first, second};
  return out;
}

TEST(SpanFile, RoundTrips) {
  TemporaryFolder folder;
  const fs::path path = folder.path() / "trace" / "steps_40-41.json";
  write_span_file(path, two_ranks());
  const SpanFile read = read_span_file(path);
  EXPECT_EQ(read.first_step, 40);
  EXPECT_EQ(read.last_step, 41);
  ASSERT_EQ(read.ranks.size(), 2);
  EXPECT_EQ(read.ranks[0].host, "node \"1\"");
  EXPECT_EQ(read.ranks[0].process, 123);
  EXPECT_EQ(read.ranks[0].names, two_ranks().ranks[0].names);
  ASSERT_EQ(read.ranks[0].spans.size(), 2);
  const Span& span = read.ranks[0].spans[1];
  EXPECT_EQ(span.row, SpanRow::kExchange);
  EXPECT_EQ(span.name, 1);
  EXPECT_EQ(span.step, 40);
  EXPECT_NEAR(span.begin, kStart + 0.5, 1e-6);
  EXPECT_NEAR(span.length, 1.5e-6, 1e-12);
  EXPECT_EQ(span.bytes, 1 << 20);
  EXPECT_EQ(read.ranks[1].rank, 1);
  EXPECT_TRUE(read.ranks[1].spans.empty());
  EXPECT_EQ(read.ranks[1].clock_offset, -0.0125);
  EXPECT_EQ(read.ranks[1].clock_uncertainty, 0.00025);
}

TEST(SpanFile, ReadsSpansInTheOrderOfTheirBegins) {
  TemporaryFolder folder;
  const fs::path path = folder.path() / "steps_40-41.json";
  SpanFile content = two_ranks();
  std::swap(content.ranks[0].spans[0], content.ranks[0].spans[1]);
  write_span_file(path, content);
  EXPECT_EQ(read_span_file(path).ranks[0].spans[0].row, SpanRow::kPhases);
}

TEST(SpanFile, FilesOfARunAreInTheOrderOfTheirSteps) {
  TemporaryFolder folder;
  EXPECT_TRUE(span_files(folder.path()).empty());
  for (const char* name : {"steps_100-109.json", "steps_9-20.json"}) {
    write_span_file(folder.path() / "trace" / name, two_ranks());
  }
  for (const char* name : {"request.json", "steps_1-2.json.tmp", "steps_-.json", "steps_1.json"}) {
    write_file(folder.path() / "trace" / name, "{}");
  }
  const std::vector<fs::path> files = span_files(folder.path());
  ASSERT_EQ(files.size(), 2);
  EXPECT_EQ(files[0].filename(), "steps_9-20.json");
  EXPECT_EQ(files[1].filename(), "steps_100-109.json");
}

// The valid file with one piece of its text replaced.
class BrokenSpanFile : public ::testing::Test {
 protected:
  void expect(const std::string& from, const std::string& to, const std::string& words) {
    write_span_file(path_, two_ranks());
    std::string text = read_file(path_);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " is not in " << text;
    write_file(path_, text.replace(at, from.size(), to));
    EXPECT_ERROR(read_span_file(path_), DataError, words);
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "steps_40-41.json";
};

TEST_F(BrokenSpanFile, SaysWhatIsWrongAndWhere) {
  expect("{\"version\": 1", "{\"version\": 7", "version 7, this program reads version 1");
  expect("{\"version\"", "{version", "not JSON");
  expect("\"first_step\": 40", "\"first_step\": -3e4444", "not JSON");
  expect("\"first_step\": 40", "\"first_step\": \"x\"", "first_step: expected a whole number");
  expect("\"host\"", "\"hosts\"", "ranks[0]: has no \"host\"");
  expect("[1,1,40,", "[1,2,40,", "ranks[0].spans[1]: name 2 of 2");
  expect("[1,1,40,", "[3,1,40,", "ranks[0].spans[1]: row 3 is not known");
  expect("[1,1,40,", "[1,1,40.5,", "ranks[0].spans[1]: expected 6 whole numbers");
  expect("[1,1,40,", "[1,40,", "ranks[0].spans[1]: expected 6 whole numbers");
  expect(",125000000,", ",-1,", "ranks[0].spans[0]: lasts a negative time");
  EXPECT_ERROR(read_span_file(folder_.path() / "steps_1-2.json"), DataError, "no such file");
}

}  // namespace
}  // namespace lockstep
