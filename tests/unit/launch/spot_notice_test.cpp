// The shapes are those of the clouds' documentation.
#include "launch/job/spot_notice.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr double kNow = 1505758040;  // 2017-09-18T18:07:20Z

TEST(SpotNotice, OfAwsHasActionAndTime) {
  const NoticeAnswer found =
      read_aws_notice({200, R"({"action": "terminate", "time": "2017-09-18T18:09:20Z"})"}, kNow);
  ASSERT_TRUE(found.notice) << found.trouble;
  EXPECT_EQ(found.notice->action, "terminate");
  EXPECT_EQ(found.notice->deadline - kNow, 120);
}

TEST(SpotNotice, OfAwsIsAbsentWith404AndNothingElse) {
  const NoticeAnswer none = read_aws_notice({404, "<html>Not Found</html>"}, kNow);
  EXPECT_FALSE(none.notice);
  EXPECT_EQ(none.trouble, "");
  for (const HttpAnswer& nonsense :
       {HttpAnswer{200, "<html>"}, HttpAnswer{200, "[]"}, HttpAnswer{200, ""},
        HttpAnswer{500, "{}"}, HttpAnswer{200, R"({"action": 3})"},
        HttpAnswer{200, R"({"action": "stop", "time": "soon"})"}}) {
    const NoticeAnswer found = read_aws_notice(nonsense, kNow);
    EXPECT_FALSE(found.notice) << nonsense.body;
    EXPECT_NE(found.trouble, "") << nonsense.body;
  }
}

TEST(SpotNotice, OfGoogleGivesThirtySeconds) {
  EXPECT_FALSE(read_google_notice({200, "FALSE\n"}, kNow).notice);
  const NoticeAnswer found = read_google_notice({200, "TRUE"}, kNow);
  ASSERT_TRUE(found.notice);
  EXPECT_EQ(found.notice->deadline - kNow, 30);
  EXPECT_NE(read_google_notice({200, "maybe"}, kNow).trouble, "");
  EXPECT_NE(read_google_notice({404, "FALSE"}, kNow).trouble, "");
}

TEST(SpotNotice, OfAzureIsTheFirstEventThatTakesThisMachine) {
  const std::string events = R"({"DocumentIncarnation": 2, "Events": [
    {"EventId": "1", "EventType": "Reboot", "Resources": ["set_0"], "EventStatus": "Scheduled",
     "NotBefore": "Mon, 18 Sep 2017 18:08:00 GMT"},
    {"EventId": "2", "EventType": "Preempt", "Resources": ["set_1"], "EventStatus": "Scheduled",
     "NotBefore": "Mon, 18 Sep 2017 18:07:55 GMT"},
    {"EventId": "3", "EventType": "Terminate", "Resources": ["set_0"], "EventStatus": "Scheduled",
     "NotBefore": "Mon, 18 Sep 2017 18:12:20 GMT"}]})";
  const NoticeAnswer mine = read_azure_notice({200, events}, "set_0", kNow);
  ASSERT_TRUE(mine.notice) << mine.trouble;
  EXPECT_EQ(mine.notice->action, "terminate");
  EXPECT_EQ(mine.notice->deadline - kNow, 300);
  EXPECT_EQ(read_azure_notice({200, events}, "", kNow).notice->action, "preempt");
  EXPECT_FALSE(read_azure_notice({200, events}, "set_2", kNow).notice);
  EXPECT_FALSE(read_azure_notice({200, R"({"Events": []})"}, "", kNow).notice);
  EXPECT_EQ(read_azure_notice({200, R"({"Events": []})"}, "", kNow).trouble, "");
}

TEST(SpotNotice, OfAzureWithoutATimeHasBegun) {
  const NoticeAnswer begun = read_azure_notice(
      {200, R"({"Events": [{"EventType": "Preempt", "EventStatus": "Started", "NotBefore": ""}]})"},
      "set_0", kNow);
  ASSERT_TRUE(begun.notice);
  EXPECT_EQ(begun.notice->deadline, kNow);
  for (const char* nonsense : {"", "[]", R"({"Events": {}})", R"({"Events": [3]})",
                               R"({"Events": [{"EventType": "Preempt", "NotBefore": "soon"}]})"}) {
    EXPECT_NE(read_azure_notice({200, nonsense}, "", kNow).trouble, "") << nonsense;
  }
}

TEST(SpotNotice, CloudsAreRecognisedByTheirFirmware) {
  EXPECT_EQ(cloud_of({.vendor = "Amazon EC2", .product = "m7i.large"}), Cloud::kAws);
  EXPECT_EQ(cloud_of({.vendor = "Google", .product = "Google Compute Engine"}), Cloud::kGoogle);
  EXPECT_EQ(cloud_of({.vendor = "Microsoft Corporation",
                      .product = "Virtual Machine",
                      .chassis_tag = "7783-7084-3265-9085-8269-3286-77"}),
            Cloud::kAzure);
  // A machine of one's own under Hyper-V, under QEMU, and one that says nothing.
  EXPECT_EQ(cloud_of({.vendor = "Microsoft Corporation", .product = "Virtual Machine"}),
            Cloud::kNone);
  EXPECT_EQ(cloud_of({.vendor = "QEMU"}), Cloud::kNone);
  EXPECT_EQ(cloud_of({}), Cloud::kNone);
  EXPECT_EQ(cloud_of_name("azure"), Cloud::kAzure);
  EXPECT_THROW(cloud_of_name("amazon"), ConfigError);
}

}  // namespace
}  // namespace lockstep
