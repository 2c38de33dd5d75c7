// The launcher over several agents: hosts that ssh reaches without leaving this machine, so that
// every piece can be killed. Real sshd and networks: tests/integration/netlab,
// docs/launch.md#what-a-failure-costs.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "launch/job/agent.h"
#include "launch/job/channel.h"
#include "launch/job/launcher.h"
#include "support/program.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool wait_until(const std::function<bool()>& done, milliseconds limit = seconds(60)) {
  Clock::time_point until = Clock::now() + limit;
  while (!done()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

bool ended(pid_t pid) { return start_time_of(pid) == 0; }

// An ssh that runs the command here and leaves its process number; a host is down while the file
// down-NAME is there. Ranks are shell scripts; $1 is the folder of the test.
class Hosts : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(
        path_ / "ssh",
        "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\ncd \"$(dirname \"$0\")\"\n"
        "[ -e down-$2 ] && { echo \"ssh: connect to host $2 port 22: Connection refused\" >&2; "
        "exit 255; }\necho $$ > agent-$2\neval \"$3\"\n");
    fs::permissions(path_ / "ssh", fs::perms::owner_all);
  }

  Launch launch(int hosts, const std::string& script) {
    Launch out;
    for (int i = 0; i < hosts; ++i) {
      std::string name(1, static_cast<char>('a' + i));
      out.hosts.hosts.push_back(
          {.name = name, .ssh_name = name, .address = "", .slots = 1, .by_ssh = true, .state = ""});
    }
    out.hosts.source = "-H";
    out.folder = path_.string();
    out.remote.ssh = (path_ / "ssh").string();
    out.remote.program = LOCKSTEP_PROGRAM;
    out.command = {"sh", "-c", script, "rank", path_.string()};
    out.supervision.host_timeout = seconds(5);
    out.supervision.poll = milliseconds(300);
    out.events = path_ / "launch.jsonl";
    shown_ = Descriptor(::open((path_ / "shown").c_str(), O_CREAT | O_APPEND | O_RDWR, 0600));
    out.output.descriptors = {shown_.get(), shown_.get()};
    return out;
  }

  // In a process of its own; the exit code is the outcome's.
  pid_t begin(const Launch& launch) {
    pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      try {
        LaunchOutcome outcome = run_launch(launch);
        if (!outcome.message.empty()) write_file(path_ / "outcome", outcome.message);
        ::_exit(outcome.exit_code);
      } catch (const Error& error) {
        write_file(path_ / "outcome", error.describe());
        ::_exit(error.exit_code());
      }
    }
    return pid;
  }
  int exit_code_of(pid_t launcher) {
    int status = -1;
    bool over = wait_until([&] { return ::waitpid(launcher, &status, WNOHANG) == launcher; });
    EXPECT_TRUE(over) << "the launcher hangs";
    if (!over) {
      ::kill(launcher, SIGKILL);
      ::waitpid(launcher, &status, 0);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run(const Launch& launch) { return exit_code_of(begin(launch)); }

  std::string console() { return read_file(path_ / "shown"); }
  std::string outcome() {
    return fs::exists(path_ / "outcome") ? read_file(path_ / "outcome") : "";
  }
  std::string word(const std::string& name) {
    std::string text = fs::exists(path_ / name) ? read_file(path_ / name) : "";
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  pid_t pid_in(const std::string& name) {
    // Not -1: a signal to that goes to every process there is.
    if (!wait_until([&] { return !word(name).empty(); })) throw std::runtime_error("no " + name);
    return std::stoi(word(name));
  }

  // Ranks that note their process and attempt and work until they are told to stop or may go.
  const std::string work_ =
      "trap 'exit 143' TERM; echo $LOCKSTEP_SIZE > $1/size$LOCKSTEP_RANK-$LOCKSTEP_ATTEMPT; "
      "echo $$ > $1/rank$LOCKSTEP_RANK-$LOCKSTEP_ATTEMPT; "
      "while [ ! -e $1/go ]; do sleep 0.02; done";
  void may_go() { write_file(path_ / "go", ""); }

  TemporaryFolder folder_;
  fs::path path_ = folder_.path();
  Descriptor shown_;
};

TEST_F(Hosts, GiveRanksTheirPlacesAndMarkTheirOutput) {
  Launch l = launch(2,
                    "echo $LOCKSTEP_RANK/$LOCKSTEP_SIZE $LOCKSTEP_LOCAL_RANK/$LOCKSTEP_LOCAL_SIZE "
                    "$LOCKSTEP_HOST $LOCKSTEP_MASTER_ADDRESS $OURS ${LOCKSTEP_STORE_FD:+store} > "
                    "$1/place$LOCKSTEP_RANK; pwd > $1/cwd$LOCKSTEP_RANK; echo hello");
  l.hosts.hosts[0].slots = 2;
  l.environment = {"OURS=a b"};
  EXPECT_EQ(run(l), 0) << outcome() << console();
  EXPECT_EQ(word("place0"), "0/3 0/2 a 127.0.0.1 a b store");
  EXPECT_EQ(word("place1"), "1/3 1/2 a 127.0.0.1 a b");
  EXPECT_EQ(word("place2"), "2/3 0/1 b 127.0.0.1 a b");
  EXPECT_EQ(word("cwd2"), path_.string());
  EXPECT_NE(console().find("[b:2] hello\n"), std::string::npos) << console();
}

TEST_F(Hosts, NameTheHostOfTheFirstFailure) {
  Launch l = launch(2, "test $LOCKSTEP_RANK = 1 && { echo no such file >&2; exit 3; }; sleep 60");
  EXPECT_EQ(run(l), 3);
  EXPECT_NE(outcome().find("rank 1 of 2 on b exited with code 3"), std::string::npos) << outcome();
  EXPECT_NE(outcome().find("| no such file"), std::string::npos);
}

TEST_F(Hosts, ThatAreNotThereAreNamedAtTheFirstStart) {
  write_file(path_ / "down-b", "");
  EXPECT_EQ(run(launch(2, "touch $1/started")), kExitMachine);
  EXPECT_NE(outcome().find("b: nothing listens on its ssh port"), std::string::npos) << outcome();
  EXPECT_FALSE(fs::exists(path_ / "started"));
}

TEST_F(Hosts, RefuseWhatIsNotThereBeforeAnythingStarts) {
  Launch l = launch(2, "touch $1/started");
  l.folder = "/no/such/folder";
  EXPECT_EQ(run(l), kExitConfig);
  EXPECT_NE(outcome().find("the folder /no/such/folder is not there"), std::string::npos);
  l = launch(2, "touch $1/started");
  l.interface = "nope0";
  EXPECT_EQ(run(l), kExitConfig);
  EXPECT_NE(outcome().find("no interface \"nope0\""), std::string::npos) << outcome();
  l = launch(2, "touch $1/started");
  l.needs_gpus = true;
  l.hosts.hosts[1].slots = 200;
  EXPECT_EQ(run(l), kExitConfig);
  EXPECT_NE(outcome().find("200 ranks but "), std::string::npos) << outcome();
  EXPECT_FALSE(fs::exists(path_ / "started"));
}

TEST_F(Hosts, OfAnotherVersionAreRefused) {
  write_file(path_ / "hello", "motd\nlockstep agent stream 1\n" +
                                  encode_frame(kHello, encode(AgentHello{.version = "0.0.1"})));
  write_file(path_ / "other", "#!/bin/sh\ncat " + (path_ / "hello").string() + "\nexec sleep 5\n");
  fs::permissions(path_ / "other", fs::perms::owner_all);
  Launch l = launch(1, "touch $1/started");
  l.remote.program = (path_ / "other").string();
  EXPECT_EQ(run(l), kExitConfig);
  EXPECT_NE(outcome().find("host a has lockstep 0.0.1"), std::string::npos) << outcome();
}

TEST_F(Hosts, StartAgainWhenAnAgentIsKilled) {
  Launch l = launch(2, work_);
  l.supervision.restarts = 1;
  pid_t launcher = begin(l);
  pid_t rank0 = pid_in("rank0-0"), rank1 = pid_in("rank1-0");
  ::kill(pid_in("agent-b"), SIGKILL);
  pid_in("rank1-1");
  EXPECT_TRUE(ended(rank0));
  EXPECT_TRUE(ended(rank1)) << "the orphan killer of a killed agent ends its ranks";
  may_go();
  EXPECT_EQ(exit_code_of(launcher), 0) << console();
  EXPECT_NE(console().find("host b lost"), std::string::npos) << console();
}

TEST_F(Hosts, ThatFallSilentAreLostAndTheirFormerRanksEnd) {
  Launch l = launch(2, work_);
  l.supervision.restarts = 1;
  l.silence = seconds(2);
  pid_t launcher = begin(l);
  pid_t rank1 = pid_in("rank1-0");
  ::kill(pid_in("agent-b"), SIGSTOP);
  pid_in("rank1-1");
  EXPECT_TRUE(ended(rank1)) << "before those of the next attempt start";
  may_go();
  EXPECT_EQ(exit_code_of(launcher), 0) << console();
  EXPECT_NE(console().find("host b lost: no sign of life for 2."), std::string::npos) << console();
}

TEST_F(Hosts, EndWhenTheLauncherFallsSilent) {
  Launch l = launch(2, work_);
  l.silence = seconds(2);
  pid_t launcher = begin(l);
  pid_t rank0 = pid_in("rank0-0"), rank1 = pid_in("rank1-0");
  ::kill(launcher, SIGSTOP);
  EXPECT_TRUE(wait_until([&] { return ended(rank0) && ended(rank1); }));
  ::kill(launcher, SIGKILL);
  exit_code_of(launcher);
}

TEST_F(Hosts, LeaveNothingBehindWhenTheLauncherIsKilled) {
  Launch l = launch(2, "trap '' TERM; sleep 60 & echo $! > $1/child$LOCKSTEP_RANK; " + work_);
  l.supervision.grace = milliseconds(300);
  pid_t launcher = begin(l);
  std::vector<pid_t> pids;
  for (const char* name : {"rank0-0", "rank1-0", "child0", "child1", "agent-a", "agent-b"}) {
    pids.push_back(pid_in(name));
  }
  ::kill(launcher, SIGKILL);
  exit_code_of(launcher);
  for (pid_t pid : pids) EXPECT_TRUE(wait_until([&] { return ended(pid); })) << pid;
}

TEST_F(Hosts, GoOnWithFewerAndBackToAll) {
  Launch l = launch(2, work_);
  l.supervision.restarts = 1;
  l.supervision.min_hosts = 1;
  l.supervision.host_timeout = seconds(5);  // also what the first start may take at most
  pid_t launcher = begin(l);
  pid_in("rank1-0");
  write_file(path_ / "down-b", "");
  ::kill(pid_in("agent-b"), SIGKILL);
  pid_in("rank0-1");
  EXPECT_EQ(word("size0-1"), "1") << console();
  fs::remove(path_ / "down-b");
  pid_in("rank1-2");
  pid_in("rank0-2");
  EXPECT_EQ(word("size0-2"), "2") << console();
  may_go();
  EXPECT_EQ(exit_code_of(launcher), 0) << console();
}

TEST_F(Hosts, ThatAreAskedToGoAreLeftOut) {
  Launch l = launch(2, work_);
  l.supervision.min_hosts = 1;
  pid_t launcher = begin(l);
  pid_in("rank0-0");
  pid_in("rank1-0");
  // The others of a training learn of it from the rank that was told; these scripts do not.
  std::thread others([&] {
    wait_until([&] { return console().find("host b got SIGTERM") != std::string::npos; });
    ::kill(pid_in("rank0-0"), SIGTERM);
  });
  ::kill(pid_in("agent-b"), SIGTERM);
  others.join();
  pid_in("rank0-1");
  EXPECT_EQ(word("size0-1"), "1") << console();
  may_go();
  EXPECT_EQ(exit_code_of(launcher), 0) << console();
}

TEST_F(Hosts, GetTimeForACheckpointWhenTheLauncherIsInterrupted) {
  Launch l = launch(2,
                    "trap 'echo saved > $1/saved$LOCKSTEP_RANK; exit 143' TERM; "
                    "echo > $1/up$LOCKSTEP_RANK; while :; do sleep 0.02; done");
  pid_t launcher = begin(l);
  wait_until([&] { return fs::exists(path_ / "up0") && fs::exists(path_ / "up1"); });
  ::kill(launcher, SIGTERM);
  EXPECT_EQ(exit_code_of(launcher), 143);
  EXPECT_EQ(word("saved0"), "saved");
  EXPECT_EQ(word("saved1"), "saved");
}

}  // namespace
}  // namespace lockstep
