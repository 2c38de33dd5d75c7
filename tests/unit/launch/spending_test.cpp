#include "launch/ending/spending.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {
namespace {

TEST(Prices, AreOfAllHostsOrOfSingleOnes) {
  EXPECT_DOUBLE_EQ(parse_prices("0.526/h", {"a", "b"}, {"a", "b"}).of("a"), 0.526);
  const HostPrices prices = parse_prices("a=0.9/h,0.5", {"a", "b"}, {"a", "b"});
  EXPECT_DOUBLE_EQ(prices.of("a"), 0.9);
  EXPECT_DOUBLE_EQ(prices.of("b"), 0.5);
  EXPECT_FALSE(HostPrices().given());
}

TEST(Prices, AreRefusedWhenTheyAreNone) {
  const std::vector<std::string> hosts = {"node-a", "node-b"};
  for (const char* text : {"", "0", "-1/h", "free", "0.5/d", "inf", "node-a="}) {
    EXPECT_THROW(parse_prices(text, hosts, hosts), ConfigError) << text;
  }
  EXPECT_THROW(parse_prices("0.5,0.6", hosts, hosts), ConfigError);
  try {
    parse_prices("nodea=1,0.5", hosts, hosts);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "--price nodea=1,0.5: no host \"nodea\"; did you mean node-a?");
  }
  try {
    parse_prices("node-a=1", hosts, hosts);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "--price node-a=1: no price of host node-b");
  }
}

TEST(Spending, EndsBeforeTheSumIsSpent) {
  // Two hosts of 0.9 an hour, 2 spent before: 18 of 20 are left, 10 hours.
  const Spending s{.per_hour = 1.8, .before = 2, .budget = 20};
  EXPECT_DOUBLE_EQ(s.seconds_until(1), 36000);
  EXPECT_DOUBLE_EQ(s.seconds_until(kNearBudget), (16 - 2) / 1.8 * 3600);
  const double margin = stop_margin(10, 20);
  EXPECT_GT(margin, 40) << "twice the longest checkpoint, which is more than the grace time";
  EXPECT_GE(stop_margin(10, 0), 10);
  const double stop = s.stop_after(margin);
  EXPECT_DOUBLE_EQ(stop, 36000 - margin);
  EXPECT_LE(s.spent(stop + margin), s.budget);
  EXPECT_DOUBLE_EQ(s.here(3600), 1.8);
  const Spending over{.per_hour = 1, .before = 30, .budget = 20};
  EXPECT_EQ(over.seconds_until(1), 0);
  EXPECT_EQ(over.stop_after(margin), 0);
}

TEST(Spending, RefusesABudgetThatDoesNotLastForAStop) {
  EXPECT_NO_THROW(check_budget({.per_hour = 1, .before = 0, .budget = 1}, 1, 13));
  try {
    check_budget({.per_hour = 3600, .before = 4, .budget = 10}, 2, 13);
    FAIL();
  } catch (const ConfigError& error) {
    const std::string says = error.what();
    EXPECT_NE(says.find("--budget 10: 4.00 are spent; 2 hosts cost 3600 an hour, so"),
              std::string::npos)
        << says;
  }
}

TEST(Spending, CountsWhatEarlierLaunchesCost) {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "launch.jsonl";
  EXPECT_EQ(spent_before(log), 0);
  EXPECT_EQ(spent_before(""), 0);
  write_file(log,
             "{\"event\":\"start\",\"run_id\":\"x\",\"cost\":0.0}\n"
             "{\"event\":\"cost\",\"run_id\":\"x\",\"cost\":1.25}\n"
             "{\"event\":\"start\",\"run_id\":\"y\",\"cost\":0.01}\n"
             "{\"event\":\"end\",\"run_id\":\"y\",\"cost\":0.5}\n"
             "{\"event\":\"end\",\"run_id\":\"z\"}\n"
             "{\"event\":\"cost\",\"run_id\":\"x\",\"co");
  EXPECT_DOUBLE_EQ(spent_before(log), 1.75);
}

}  // namespace
}  // namespace lockstep
