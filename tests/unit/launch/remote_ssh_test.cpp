// The system's ssh against real servers on this machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "launch/hosts/remote.h"
#include "support/expect_error.h"
#include "support/ssh_hosts.h"

namespace lockstep {
namespace {

class RemoteBySsh : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (SshHosts::missing().empty()) servers_ = new SshHosts(2);
  }
  static void TearDownTestSuite() {
    delete servers_;
    servers_ = nullptr;
  }
  void SetUp() override {
    if (!servers_) GTEST_SKIP() << SshHosts::missing();
    options_.ssh_config = servers_->config();
  }

  HostList hosts(const std::string& names) { return read_hosts({.hosts = names}); }
  std::vector<RemoteResult> run(const HostList& hosts, const std::string& text) {
    return run_on_hosts(hosts, options_, text, std::chrono::seconds(20));
  }
  std::string error_with(const std::string& setting) {
    HostList list = hosts("n0");
    options_.extra = {setting};
    RemoteResult result = run(list, "true")[0];
    EXPECT_NE(result.status, 0);
    return remote_error(list.hosts[0], result.status, result.error).describe();
  }

  inline static SshHosts* servers_ = nullptr;
  RemoteOptions options_;
};

#define EXPECT_HOLDS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST_F(RemoteBySsh, RunsACommandOnAllHostsAtOnce) {
  HostList list = hosts("n0,n1");
  auto results = run(list, "echo \"$HOME\"; echo 'it'\\''s' >&2; exit 3");
  for (int i : {0, 1}) {
    EXPECT_EQ(results[i].status, 3 << 8) << results[i].error;
    EXPECT_EQ(results[i].output, servers_->home(i).string() + "\n");
    EXPECT_EQ(results[i].error, "it's\n");
  }
}

TEST_F(RemoteBySsh, TellsWhyAHostCannotBeReached) {
  EXPECT_HOLDS(error_with("HostName=no-such-host.invalid"), "n0: the name n0 does not resolve");
  EXPECT_HOLDS(error_with("Port=1"), "n0: nothing listens on its ssh port");
  EXPECT_HOLDS(error_with("PubkeyAuthentication=no"), "n0: the host refused our key");
  EXPECT_HOLDS(error_with("UserKnownHostsFile=/dev/null"), "n0: its host key is unknown");
  std::string wrong = servers_->root() + "/wrong";
  std::string other = read_file(servers_->root() + "/host1.known");
  write_file(wrong,
             fmt::format("[127.0.0.1]:{}{}", servers_->port(0), other.substr(other.find(' '))));
  EXPECT_HOLDS(error_with("UserKnownHostsFile=" + wrong), "not the one known before");
  EXPECT_HOLDS(error_with("NoSuchOption=1"), "ssh does not accept its configuration");
}

TEST_F(RemoteBySsh, GivesUpOnAHostThatDoesNotAnswer) {
  options_.connect_seconds = 1;
  HostList list = hosts("n0");
  options_.extra = {"ProxyCommand=sleep 100"};  // takes the connection and says nothing
  RemoteResult result = run(list, "true")[0];
  EXPECT_LT(result.seconds, 5);
  EXPECT_HOLDS(remote_error(list.hosts[0], result.status, result.error).describe(),
               "n0: no answer");
}

TEST_F(RemoteBySsh, SaysWhenACommandWasKilledThere) {
  HostList list = hosts("n0");
  RemoteResult result = run(list, "kill -KILL $$")[0];
  EXPECT_HOLDS(remote_error(list.hosts[0], result.status, result.error).describe(),
               "a signal ended the command there");
}

TEST_F(RemoteBySsh, FindsNoLockstepWhereThereIsNone) {
  HostList list = hosts("n0");
  options_.program = "lockstep-that-is-not-there";
  RemoteResult result = run(list, lockstep_text(options_, {"train"}))[0];
  EXPECT_HOLDS(remote_error(list.hosts[0], result.status, result.error).describe(),
               "n0: no lockstep there");
}

TEST_F(RemoteBySsh, EndsTheCommandThereWhenTheConnectionEnds) {
  HostList list = hosts("n1");
  std::string marker = (servers_->home(1) / "pid").string();
  RemoteJob job{.host = &list.hosts[0],
                .shell_text = "sleep 100 & echo $! > " + marker + "; wait",
                .ends_with_us = true};
  auto result = run_jobs({job}, options_, {.limit = std::chrono::seconds(2)})[0];
  EXPECT_TRUE(result.timed_out);
  std::string process = "/proc/" + std::to_string(std::stoi(read_file(marker))) + "/stat";
  auto runs = [&] {
    std::string text;
    std::getline(std::ifstream(process), text);
    return !text.empty() && text.find(") Z ") == std::string::npos;
  };
  for (int i = 0; i < 300 && runs(); ++i) ::usleep(10000);
  EXPECT_FALSE(runs());
}

TEST_F(RemoteBySsh, FeedsAHost) {
  HostList list = hosts("n0");
  RemoteJob job{.host = &list.hosts[0],
                .shell_text = "wc -c",
                .feeder = {"head", "-c", "3000000", "/dev/zero"}};
  EXPECT_EQ(run_jobs({job}, options_, {})[0].output, "3000000\n");
}

}  // namespace
}  // namespace lockstep
