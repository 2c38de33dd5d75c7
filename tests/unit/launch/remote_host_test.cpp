// What the launcher takes of an agent's messages, with a script in the place of ssh and the agent.
#include <gtest/gtest.h>

#include "base/file.h"
#include "launch/job/channel.h"
#include "launch/job/host_control.h"
#include "train/folder/run_folder.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

// Keeps what it hears, as words.
class Heard : public HostEvents {
 public:
  std::vector<std::string> words;

  void on_ready(int, const AgentHello&) override { words.emplace_back("ready"); }
  void on_prepared(int, const Prepared&) override { words.emplace_back("prepared"); }
  void on_store_open(int, int) override { words.emplace_back("store"); }
  void on_told(int, int) override { words.emplace_back("told"); }
  void on_notice(int, const HostNotice&) override { words.emplace_back("notice"); }
  void on_lost(int, const Error& why, bool) override { words.push_back("lost: " + why.describe()); }
  void on_host_words(int, const std::string& line) override { words.push_back(line); }
  void on_answer(int, char, std::string_view) override { words.emplace_back("answer"); }
  void on_output(int, Stream, std::string_view) override { words.emplace_back("output"); }
  void on_output_end(int, Stream) override { words.emplace_back("output end"); }
  void on_report(int, const std::string&) override { words.emplace_back("report"); }
  void on_rank_end(int rank, int, bool) override { words.push_back(fmt::format("end {}", rank)); }
  void on_rank_killed(int) override { words.emplace_back("killed"); }
  void on_idle(int) override { words.emplace_back("idle"); }
};

class RemoteHostTest : public testing::Test {
 protected:
  // An agent that says the first frames, and the others once it has been told something more.
  void begin(const std::string& first, const std::string& then) {
    const AgentHello hello{.version = LOCKSTEP_VERSION, .libtorch = libtorch_version()};
    write("first", "lockstep agent stream 1\n" + encode_frame(kHello, encode(hello)) + first);
    write("then", then);
    // The launcher's stream begins with a line as well.
    write("ssh",
          "#!/bin/sh\ncd '" + folder_.path().string() +
              "'\ncat first\nread -r line\nhead -c 1 >/dev/null\ncat then\ncat >/dev/null\n");
    fs::permissions(folder_.path() / "ssh", fs::perms{0700});
    AgentPlace place;
    place.host = {.name = "a", .ssh_name = "a.invalid", .by_ssh = true};
    place.remote.ssh = (folder_.path() / "ssh").string();
    host_ = make_remote_host(loop_, heard_, place);
  }
  // Listens until so many things were heard, but not for more than some seconds.
  void hear(std::size_t count) {
    const auto until = Clock::now() + seconds(20);
    while (heard_.words.size() < count && Clock::now() < until) loop_.wait(until);
  }
  const std::vector<std::string>& words() const { return heard_.words; }
  HostControl& host() { return *host_; }

 private:
  void write(const std::string& name, const std::string& text) {
    write_file(folder_.path() / name, text);
  }
  TemporaryFolder folder_;
  EventLoop loop_;
  Heard heard_;
  std::unique_ptr<HostControl> host_;
};

// The ranks have ended by themselves, the agent was told to stop them all the same, and its answer
// to that comes when the next attempt has begun.
TEST_F(RemoteHostTest, WhatAnAgentSaysOfTheAttemptBeforeIsNotOfThisOne) {
  const std::string end = encode_frame(kRankEnd, encode(RankEndMessage{.rank = 0}));
  const std::string idle = encode_frame(kIdle, "");
  begin(end + idle, idle + encode_frame(kPrepared, encode(Prepared{})) + end + idle);
  hear(3);
  ASSERT_EQ(words(), (std::vector<std::string>{"ready", "end 0", "idle"}));
  host().prepare({});
  hear(6);
  EXPECT_EQ(words(),
            (std::vector<std::string>{"ready", "end 0", "idle", "prepared", "end 0", "idle"}));
}

TEST_F(RemoteHostTest, AMessageThatCannotBeReadLosesTheHost) {
  begin(encode_frame(kRankEnd, "no JSON") + encode_frame(kIdle, ""), "");
  hear(2);
  ASSERT_EQ(words().size(), 2u);
  EXPECT_EQ(words()[1].find("lost: "), 0u) << words()[1];
}

}  // namespace
}  // namespace lockstep
