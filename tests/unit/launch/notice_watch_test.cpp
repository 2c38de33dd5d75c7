#include "launch/job/notice_watch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "base/clock.h"
#include "support/metadata_server.h"

namespace lockstep {
namespace {

constexpr const char* kToken = "api/token";
constexpr const char* kAction = "spot/instance-action";

class NoticeWatchTest : public ::testing::Test {
 protected:
  void watch(const std::string& cloud, const std::string& url) {
    watch_ = std::make_unique<NoticeWatch>(
        loop_, SpotOptions{.cloud = cloud, .metadata = url},
        NoticeWatch::Listener{[this](const HostNotice& n) { notices_.push_back(n); },
                              [this](const std::string& w) { words_.push_back(w); }});
    watch_->watch(true);
  }
  // Runs the loop until then, at most 20 s.
  bool run_until(const std::function<bool()>& done) {
    const auto start = Clock::now();
    while (!done()) {
      if (seconds_since(start) > 20) return false;
      const auto next = watch_->next_deadline();
      const auto soon = Clock::now() + std::chrono::milliseconds(50);
      loop_.wait(next ? std::min(*next, soon) : soon);
      watch_->check_time(Clock::now());
    }
    return true;
  }

  MetadataServer server_;
  EventLoop loop_;
  std::unique_ptr<NoticeWatch> watch_;
  std::vector<HostNotice> notices_;
  std::vector<std::string> words_;
};

TEST_F(NoticeWatchTest, TellsANoticeOnceAndItsWithdrawal) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);  // which nobody serves
  server_.answer(kToken, 200, "secret");
  server_.answer(kAction, 404, "");
  watch("aws", server_.url());
  ASSERT_TRUE(run_until([&] { return server_.requests().size() >= 3; }));
  EXPECT_TRUE(notices_.empty());
  EXPECT_NE(server_.requests()[0].find("PUT /latest/api/token"), std::string::npos);
  EXPECT_NE(server_.requests()[1].find("X-aws-ec2-metadata-token: secret"), std::string::npos);
  server_.answer(kAction, 200, R"({"action": "stop", "time": "2100-01-01T00:00:00Z"})");
  ASSERT_TRUE(run_until([&] { return !notices_.empty(); }));
  EXPECT_EQ(notices_[0].cloud, "aws");
  EXPECT_EQ(notices_[0].action, "stop");
  EXPECT_GT(notices_[0].seconds_left, 1e6);
  const std::size_t before = server_.requests().size();
  ASSERT_TRUE(run_until([&] { return server_.requests().size() >= before + 2; }));
  EXPECT_EQ(notices_.size(), 1u);
  server_.answer(kAction, 404, "");
  ASSERT_TRUE(run_until([&] { return notices_.size() > 1; }));
  EXPECT_TRUE(notices_[1].withdrawn);
  EXPECT_TRUE(words_.empty());
  ::unsetenv("http_proxy");
}

TEST_F(NoticeWatchTest, ComplainsOnceOfNonsenseAndGoesOnAsking) {
  server_.answer("preempted", 200, "<html>");
  watch("google", server_.url());
  ASSERT_TRUE(run_until([&] { return server_.requests().size() >= 2; }));
  server_.answer("preempted", 200, "TRUE");
  ASSERT_TRUE(run_until([&] { return !notices_.empty(); }));
  ASSERT_EQ(words_.size(), 1u);
  EXPECT_NE(words_[0].find("<html>"), std::string::npos) << words_[0];
}

// The loop goes on meanwhile: run_until() returns every 50 ms.
TEST_F(NoticeWatchTest, AServerThatNeverAnswersIsMentionedOnce) {
  server_.answer("metadata", 0, "");
  watch("azure", server_.url());
  ASSERT_TRUE(run_until([&] { return !words_.empty(); }));
  EXPECT_TRUE(notices_.empty());
}

TEST_F(NoticeWatchTest, NothingIsAskedWithoutACloudOrWithoutRanks) {
  watch("no", server_.url());
  EXPECT_FALSE(watch_->next_deadline());
  watch("aws", server_.url());
  watch_->watch(false);
  EXPECT_FALSE(watch_->next_deadline());
  watch_->check_time(Clock::now());
  EXPECT_TRUE(server_.requests().empty());
}

}  // namespace
}  // namespace lockstep
