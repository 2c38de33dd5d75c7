#include "report/live/log_merge.h"

#include <gtest/gtest.h>

#include <fstream>

namespace lockstep {
namespace {

class LogMergeTest : public ::testing::Test {
 protected:
  void append(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name, std::ios::app) << text;
  }
  TemporaryFolder folder_;
};

TEST_F(LogMergeTest, MergesByTimeWithTheRanksAndTheirHosts) {
  append("rank00.log", "2026-11-21 10:00:01.000 one\n2026-11-21 10:00:03.500 three\nmore\n");
  append("rank01.log", "2026-11-21 10:00:02.250 two\n2026-11-21 10:00:04.000 half a li");
  append("rank01.error", "error: lost rank 0\n  try: again\n");
  append("other.txt", "no log\n");
  LogMerge merge(folder_.path(), RankFilter(), 100);
  merge.set_sources({{0, {"a", 0}}, {1, {"b", 0}}});
  EXPECT_EQ(merge.news(),
            "a:0 2026-11-21 10:00:01.000 one\n"
            "b:1 2026-11-21 10:00:02.250 two\n"
            "a:0 2026-11-21 10:00:03.500 three\n"
            "a:0 more\n"
            "b:1 error: lost rank 0\n"
            "b:1   try: again\n");
  EXPECT_EQ(merge.news(), "");
  append("rank01.log", "ne\n");
  EXPECT_EQ(merge.news(), "b:1 2026-11-21 10:00:04.000 half a line\n");
}

TEST_F(LogMergeTest, BeginsWithTheLastLinesAndKeepsToTheRanksAskedFor) {
  for (int i = 0; i < 30; ++i) {
    append("rank00.log", "2026-11-21 10:00:01.000 line " + std::to_string(i) + "\n");
    append("rank12.log", "2026-11-21 10:00:01.000 line\n");
  }
  LogMerge merge(folder_.path(), RankFilter("0-3"), 2);
  EXPECT_EQ(merge.news(),
            "rank:0 2026-11-21 10:00:01.000 line 28\nrank:0 2026-11-21 10:00:01.000 line 29\n");
}

TEST_F(LogMergeTest, ClocksThatDifferDoNotMixUpTheOrder) {
  append("rank00.log", "2026-11-21 10:00:01.000 first\n");
  append("rank01.log", "2026-11-21 09:59:31.500 second\n");  // its clock is 30 s late
  LogMerge merge(folder_.path(), RankFilter(), 100);
  merge.set_sources({{1, {"b", -30}}});
  EXPECT_EQ(merge.news(),
            "rank:0 2026-11-21 10:00:01.000 first\nb:1 2026-11-21 09:59:31.500 second\n");
}

}  // namespace
}  // namespace lockstep
