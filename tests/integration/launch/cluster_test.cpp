// lockstep cluster on hosts behind real ssh servers.
#include <gtest/gtest.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <regex>

#include "support/program.h"
#include "support/ssh_hosts.h"

namespace lockstep {
namespace {

#define EXPECT_HOLDS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

class Cluster : public ::testing::Test {
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
  }

  // `lockstep cluster WORDS` with the servers' configuration of ssh.
  ProgramResult cluster(const std::string& action, const std::string& words) {
    return run_lockstep(fmt::format("cluster {} -F {} {}", action, servers_->config(), words));
  }
  ProgramResult on_first(const std::string& command) {
    return cluster("run", "-H n0 -- '" + command + "'");
  }
  std::string work(const std::string& name) const { return servers_->root() + "/" + name; }

  inline static SshHosts* servers_ = nullptr;
};

TEST_F(Cluster, RunsACommandOnAllHostsWithTheirNamesBeforeEachLine) {
  ProgramResult result =
      cluster("run", "-H n0,n1 -- sh -c 'echo a; echo \"b  $HOME\"; echo c >&2'");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  for (int i : {0, 1}) {
    EXPECT_HOLDS(result.output,
                 fmt::format("n{0}: a\nn{0}: b  {1}\n", i, servers_->home(i).string()));
    EXPECT_HOLDS(result.errors, fmt::format("n{}: c\n", i));
  }
}

TEST_F(Cluster, ExitsWithTheFirstFailureAndNamesEveryHostThatFailed) {
  ProgramResult result = cluster("run", "-H n0,n1,n2 -o ConnectTimeout=3 -- 'exit 7'");
  EXPECT_HOLDS(result.errors, "error: 3 of 3 hosts failed\n");
  EXPECT_HOLDS(result.errors, "n0: the command there exited with code 7");
  EXPECT_HOLDS(result.errors, "n1: the command there exited with code 7");
  EXPECT_HOLDS(result.errors, "n2: the name n2 does not resolve");
  EXPECT_EQ(cluster("run", "-H n0 -- 'exit 7'").exit_code, 7);
  EXPECT_EQ(cluster("run", "-H n2 -- true").exit_code, 4);
}

TEST_F(Cluster, EndsCommandsWithItselfAndAtTheirLimit) {
  ProgramResult result = cluster("run", "-H n0 --limit 1 -- sleep 100");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_HOLDS(result.errors, "n0: no answer\n  because: no end within 1 s");
}

TEST_F(Cluster, OpensAShellByIndexOrName) {
  EXPECT_EQ(cluster("ssh 1", "-H n0,n1 -- 'echo $HOME'").output, servers_->home(1).string() + "\n");
  EXPECT_EQ(cluster("ssh n0", "-H n0,n1 -- echo 'a  b'").output, "a  b\n");
  ProgramResult result = cluster("ssh n3", "-H n0,n1");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_HOLDS(result.errors, "no host \"n3\" in -H; did you mean n0?");
}

TEST_F(Cluster, ChecksWhatIsOnEachHost) {
  ProgramResult good = cluster("check", "-H n0,n1");
  EXPECT_EQ(good.exit_code, 0) << good.errors;
  EXPECT_HOLDS(good.output, TORCH_VERSION);
  ProgramResult bad = cluster("check", "-H n0,n2 --program-on-hosts /no/lockstep");
  EXPECT_EQ(bad.exit_code, 4);
  EXPECT_HOLDS(bad.errors, "2 of 2 hosts are not ready");
  EXPECT_HOLDS(bad.errors, "n0: no lockstep that runs");
  EXPECT_HOLDS(bad.errors, "n2: the name n2 does not resolve");
  write_file(servers_->home(0) / "bin/old", "#!/bin/sh\necho lockstep 0.0.9\n");
  fs::permissions(servers_->home(0) / "bin/old", fs::perms::owner_all);
  EXPECT_HOLDS(cluster("check", "-H n0 --program-on-hosts old").errors,
               "n0: lockstep 0.0.9 there, 0.1.0 here");
}

TEST_F(Cluster, SetsAHostUpOnceAndRunsWithItsOwnLibrariesThere) {
  fs::path installed = servers_->home(0) / ".lockstep";
  fs::create_directories(installed / "incoming.999999999");  // of a copy that was cut short
  ProgramResult first = cluster("setup", "-H n0 --log-dir " + work("logs"));
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_HOLDS(first.output, ": copied ");
  EXPECT_HOLDS(first.output, fmt::format("--port {} --cidr 127.0.0.1/32", servers_->port(0)));
  EXPECT_HOLDS(first.output, "--source-group GROUP");
  EXPECT_EQ(first.output.find("--cidr 0.0.0.0/0"), std::string::npos);
  EXPECT_HOLDS(read_file(work("logs/n0.log")), "copying lockstep");
  EXPECT_FALSE(fs::exists(installed / "incoming.999999999"));

  ProgramResult libraries =
      on_first("LD_DEBUG=files ~/.lockstep/current/lockstep list tasks 2>&1 | grep calling.init");
  for (const char* library : {"libtorch_cpu.so", "libssl.so.3"}) {
    EXPECT_TRUE(std::regex_search(
        libraries.output,
        std::regex("calling init: " + installed.string() + "/[^ ]*/lib/" + library)))
        << library;
  }
  EXPECT_HOLDS(on_first("~/.lockstep/current/lockstep --version").output,
               "n0: libtorch " TORCH_VERSION);

  ProgramResult second = cluster("setup", "-H n0");
  EXPECT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_HOLDS(second.output, ": there already");

  std::string version = fs::read_symlink(installed / "current").string();
  fs::rename(installed / version, installed / "0123");  // an older version, with one content lost
  fs::remove(installed / "current");
  fs::create_symlink("0123", installed / "current");
  ProgramResult third = cluster("setup", "-H n0 --prune");
  EXPECT_HOLDS(third.output, ": copied 0 ");  // all contents are there
  EXPECT_HOLDS(third.output, "1 old versions removed");
  EXPECT_FALSE(fs::exists(installed / "0123"));
}

TEST_F(Cluster, NeverUsesACopyThatDoesNotFit) {
  ASSERT_EQ(
      on_first("mkdir -p ~/.lockstep && mount -t tmpfs -o size=30m none ~/.lockstep").exit_code, 0);
  ProgramResult result = cluster("setup", "-H n0");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_HOLDS(result.errors, "n0: its disk has ");
  EXPECT_EQ(on_first("ls ~/.lockstep").output, "n0: files\n");
  write_file(servers_->home(0) / "bin/df",  // one that lies: the disk fills while copying
             "#!/bin/sh\necho none 9 9 99999999 9% /\n");
  fs::permissions(servers_->home(0) / "bin/df", fs::perms::owner_all);
  result = cluster("setup", "-H n0");
  fs::remove(servers_->home(0) / "bin/df");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_HOLDS(result.errors, "n0: its disk is full\n  while: copying lockstep");
  EXPECT_EQ(on_first("ls ~/.lockstep").output, "n0: files\n");
  on_first("umount ~/.lockstep");
}

TEST_F(Cluster, CopiesOnlyTheFilesThatChanged) {
  fs::create_directories(work("corpus/a b"));
  write_file(work("corpus/one"), "1\n");
  write_file(work("corpus/a b/two"), "2\n");
  std::string words = fmt::format("-H n1 --no-program --copy {}:{}", work("corpus"), work("there"));
  ProgramResult first = cluster("setup", words);
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_HOLDS(first.output, "2 of 2 files copied, 4 B");
  EXPECT_EQ(read_file(work("there/a b/two")), "2\n");
  EXPECT_HOLDS(cluster("setup", words).output, "2 files, none changed");
  write_file(work("corpus/a b/two"), "3\n");
  EXPECT_HOLDS(cluster("setup", words).output, "1 of 2 files copied");
  EXPECT_EQ(read_file(work("there/a b/two")), "3\n");
  int left = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(work("there"))) ++left;
  EXPECT_EQ(left, 2);  // no folder of arrivals

  ProgramResult single = cluster("setup", fmt::format("-H n1 --no-program --copy {}:{}",
                                                      work("corpus/one"), work("else/uno")));
  EXPECT_EQ(read_file(work("else/uno")), "1\n");
  ProgramResult bad = cluster("setup", "-H n1 --no-program --copy " + work("corpus") + ":/proc/x");
  EXPECT_EQ(bad.exit_code, 4);
  EXPECT_HOLDS(bad.errors, "n1: /proc/x cannot be made: No such file or directory");
}

TEST_F(Cluster, MountsThroughFstabOnce) {
  if (!fs::exists("/etc/fstab")) GTEST_SKIP() << "no /etc/fstab here";
  fs::create_directories(work("export"));
  write_file(work("export/shared"), "yes\n");
  std::string words =
      fmt::format("-H n1 --no-program --mount {}:{}:none:bind", work("export"), work("mounted"));
  ProgramResult first = cluster("setup", words);
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_HOLDS(first.output, "line added to /etc/fstab, mounted");
  EXPECT_EQ(cluster("run", "-H n1 -- cat " + work("mounted/shared")).output, "n1: yes\n");
  EXPECT_HOLDS(cluster("setup", words).output, "in /etc/fstab already, mounted already");
  EXPECT_EQ(read_file(servers_->home(1) / "fstab"),
            fmt::format("# static\nproc /proc proc defaults 0 0\n{} {} none bind 0 0\n",
                        work("export"), work("mounted")));
  ProgramResult other = cluster("setup", words + ",ro");
  EXPECT_EQ(other.exit_code, 4);
  EXPECT_HOLDS(other.errors, "/etc/fstab has another line for " + work("mounted"));
}

}  // namespace
}  // namespace lockstep
