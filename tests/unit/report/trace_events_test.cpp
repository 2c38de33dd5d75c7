#include "report/timeline/trace_events.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "support/trace_rules.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json parsed(const TraceEvents& events) { return Json::parse(events.text({{"run", "r"}})); }

TEST(TraceEvents, AreAFileThatKeepsTheRules) {
  TraceEvents events;
  events.name_process(2, "rank 0 on \"a\"", 1);
  events.name_thread({2, 1}, "phases", 1);
  events.slice({2, 1}, "forward", 1.7e9 + 0.25, 1.7e9 + 0.5, {{"step", 3}});
  events.slice({2, 1}, "step", 1.7e9 + 0.25, 1.7e9 + 1, nullptr);
  events.instant({2, 1}, "failure", 1.7e9 + 0.75, true, {{"text", "rank 1"}});
  events.counter(2, "loss", 1.7e9, 2.5);
  events.counter(2, "loss", 1.7e9, std::nan(""));
  const Json file = parsed(events);
  EXPECT_EQ(TraceRules::broken(file), "");
  EXPECT_EQ(file["otherData"]["run"], "r");
  const Json& all = file["traceEvents"];
  ASSERT_EQ(all.size(), 8);  // four of names
  EXPECT_EQ(all[4]["ph"], "C") << "the earliest";
  EXPECT_EQ(all[4]["ts"], 0.0);
  EXPECT_EQ(all[5]["name"], "step") << "the outer one first";
  EXPECT_NEAR(all[6]["ts"].get<double>(), 250'000, 1);
  EXPECT_NEAR(all[6]["dur"].get<double>(), 250'000, 1);
  EXPECT_EQ(all[7]["s"], "g");
}

TEST(TraceEvents, FlowsGoFromSliceToSlice) {
  TraceEvents events;
  std::vector<std::pair<TracePlace, double>> points;
  for (int rank : {0, 1, 2}) {
    const TracePlace place{rank + 2, 1};
    events.name_process(place.process, "rank", rank);
    events.name_thread(place, "exchanges", 1);
    events.slice(place, "bucket", 10 + 0.1 * rank, 11, nullptr);
    points.emplace_back(place, 10 + 0.1 * rank);
  }
  events.flow("bucket", points);
  events.flow("alone", {points.front()});
  const Json file = parsed(events);
  EXPECT_EQ(TraceRules::broken(file), "");
  std::string phases;
  for (const Json& event : file["traceEvents"]) phases += event["ph"].get<std::string>();
  EXPECT_EQ(std::count(phases.begin(), phases.end(), 's'), 1);
  EXPECT_EQ(std::count(phases.begin(), phases.end(), 't'), 1);
  EXPECT_EQ(std::count(phases.begin(), phases.end(), 'f'), 1);
}

TEST(TraceEvents, TheRulesFindWhatIsWrong) {
  const auto broken = [](const char* events) {
    return TraceRules::broken(Json::parse(fmt::format(
        R"({{"traceEvents": [{{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{{"name":"p"}}}},
           {{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{{"name":"t"}}}}{}]}})",
        events)));
  };
  EXPECT_EQ(broken(""), "");
  const auto has = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  EXPECT_TRUE(has(broken(R"(,{"name":"a","ph":"X","pid":1,"tid":1,"ts":1})"), "no dur"));
  EXPECT_TRUE(has(broken(R"(,{"name":"a","ph":"X","pid":1,"tid":1,"ts":-1,"dur":1})"), "below 0"));
  EXPECT_TRUE(has(broken(R"(,{"name":"a","ph":"X","pid":1,"tid":2,"ts":1,"dur":1})"),
                  "thread 2 without a name"));
  EXPECT_TRUE(has(broken(R"(,{"name":"a","ph":"X","pid":1,"tid":1,"ts":1,"dur":2},
                            {"name":"b","ph":"X","pid":1,"tid":1,"ts":2,"dur":2})"),
                  "overlaps"));
  EXPECT_TRUE(has(broken(R"(,{"name":"a","ph":"i","s":"g","pid":1,"tid":1,"ts":2},
                            {"name":"a","ph":"i","s":"g","pid":1,"tid":1,"ts":1})"),
                  "before that"));
  EXPECT_TRUE(has(broken(R"(,{"name":"a","cat":"c","id":1,"ph":"s","pid":1,"tid":1,"ts":2})"),
                  "outside of a slice"));
  EXPECT_NE(TraceRules::broken(Json::array()), "");
}

TEST(TraceLanes, KeepOverlapsApartAndLetNestedSpansBe) {
  TraceLanes lanes;
  EXPECT_EQ(lanes.place(0, 10), 0);
  EXPECT_EQ(lanes.place(1, 3), 0) << "within";
  EXPECT_EQ(lanes.place(2, 4), 1) << "overlaps the one within";
  EXPECT_EQ(lanes.place(4, 12), 1);
  EXPECT_EQ(lanes.place(10, 11), 0);
  EXPECT_EQ(lanes.used(), 2);
}

TEST(TraceRow, PutsSlicesOneBehindTheOther) {
  TraceRow row;
  double begin = 1, end = 3;
  row.follow(begin, end);
  EXPECT_EQ(begin, 1);
  begin = 2;
  end = 4;
  row.follow(begin, end);
  EXPECT_EQ(begin, 3);
  EXPECT_EQ(end, 4);
  begin = 1;
  end = 2;
  row.follow(begin, end);
  EXPECT_EQ(begin, 4);
  EXPECT_EQ(end, 4);
}

TEST(WriteTrace, CompressesWhereTheNameSaysSo) {
  TemporaryFolder folder;
  std::string text = "{\"traceEvents\":[\n";
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + ",\n";
  text += "0]}";
  write_trace(folder.path() / "new" / "t.json.gz", text);
  EXPECT_LT(fs::file_size(folder.path() / "new" / "t.json.gz"), text.size() / 2);
  std::string unpacked;
  for (const std::string& line : read_lines(folder.path() / "new" / "t.json.gz")) {
    unpacked += line + "\n";
  }
  EXPECT_EQ(unpacked, text + "\n");
  write_trace(folder.path() / "t.json", text);
  EXPECT_EQ(read_file(folder.path() / "t.json"), text);
}

}  // namespace
}  // namespace lockstep
