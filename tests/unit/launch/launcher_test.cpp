#include "launch/job/launcher.h"
#include "base/usable_cores.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool wait_until(const std::function<bool()>& holds, milliseconds most = seconds(10)) {
  Clock::time_point end = Clock::now() + most;
  while (!holds()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

// Gone, or a zombie that only waits for its parent.
bool ended(pid_t pid) {
  std::error_code failed;
  if (::kill(pid, 0) != 0) return true;
  fs::path status = "/proc/" + std::to_string(pid) + "/stat";
  if (!fs::exists(status, failed)) return true;
  try {
    return read_file(status).find(") Z") != std::string::npos;
  } catch (const Error&) {
    return true;
  }
}

// Ranks are shell scripts; they leave process ids and other words as files in `path_`.
class Launcher : public ::testing::Test {
 protected:
  Launch shell(int ranks, const std::string& script) {
    Launch launch;
    launch.ranks = ranks;
    launch.command = {"sh", "-c", script, "rank", path_.string()};
    shown_[0] = Descriptor(::open((path_ / "shown").c_str(), O_CREAT | O_APPEND | O_RDWR, 0600));
    launch.output.descriptors = {shown_[0].get(), shown_[0].get()};
    return launch;
  }
  std::string console() { return read_file(path_ / "shown"); }
  std::string word(const std::string& name) {
    return fs::exists(path_ / name) ? std::string(trim(read_file(path_ / name))) : "";
  }
  pid_t pid_in(const std::string& name) {
    // Not -1: a signal to that goes to every process there is.
    if (!wait_until([&] { return !word(name).empty(); })) throw std::runtime_error("no " + name);
    return std::stoi(word(name));
  }

  // Runs the launch in a process of its own, to send it signals; its exit code is the outcome's.
  pid_t in_background(const Launch& launch) {
    pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      ::_exit(run_launch(launch).exit_code);
    }
    return pid;
  }
  int status_of(pid_t pid) {
    int status = -1;
    bool over = wait_until([&] { return ::waitpid(pid, &status, WNOHANG) == pid; });
    if (!over) ::kill(pid, SIGKILL);
    EXPECT_TRUE(over) << "the launcher hangs";
    return status;
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_.path();
  Descriptor shown_[1];
};

TEST_F(Launcher, GivesEachRankItsPlace) {
  ::setenv("RANK", "7", 1);
  ::setenv("PMI_RANK", "7", 1);
  LaunchOutcome outcome = run_launch(
      shell(3,
            "echo $LOCKSTEP_RANK/$LOCKSTEP_SIZE $LOCKSTEP_MASTER_ADDRESS ${RANK-no} ${PMI_RANK-no} "
            "${LOCKSTEP_STORE_FD:+store} > $1/place$LOCKSTEP_RANK; "
            "echo $LOCKSTEP_MASTER_PORT $LOCKSTEP_RUN_ID > $1/job$LOCKSTEP_RANK"));
  ::unsetenv("RANK");
  ::unsetenv("PMI_RANK");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.message;
  EXPECT_EQ(word("place0"), "0/3 127.0.0.1 no no store");
  EXPECT_EQ(word("place2"), "2/3 127.0.0.1 no no");
  EXPECT_EQ(word("job0"), word("job2"));
}

TEST_F(Launcher, HandsRankZeroAListeningSocketOfItsPort) {
  // The inode of the descriptor is that of a socket that listens (state 0A) on the port.
  LaunchOutcome outcome = run_launch(
      shell(2,
            "[ $LOCKSTEP_RANK = 0 ] || exit 0; "
            "link=$(readlink /proc/self/fd/$LOCKSTEP_STORE_FD); inode=${link#*\\[}; "
            "grep \" 0100007F:$(printf %04X $LOCKSTEP_MASTER_PORT) .* 0A .* ${inode%]} \" "
            "/proc/net/tcp > $1/listens"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.message;
  EXPECT_FALSE(word("listens").empty());
}

TEST_F(Launcher, SharesTheCoresUnlessThreadsAreGiven) {
  ::unsetenv("OMP_NUM_THREADS");
  run_launch(shell(1, "echo $OMP_NUM_THREADS > $1/all"));
  EXPECT_EQ(word("all"), std::to_string(usable_cores().size()));
  ::setenv("OMP_NUM_THREADS", "3", 1);
  run_launch(shell(1, "echo $OMP_NUM_THREADS > $1/given"));
  ::unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(word("given"), "3");
  Launch pinned = shell(1, "grep Cpus_allowed_list /proc/self/status > $1/cores");
  pinned.pin = true;
  EXPECT_EQ(run_launch(pinned).exit_code, 0);
  EXPECT_FALSE(word("cores").empty());
  pinned.ranks = static_cast<int>(usable_cores().size()) + 1;
  EXPECT_THROW(run_launch(pinned), ConfigError);
}

TEST_F(Launcher, NamesTheFirstFailureAndStopsTheOthers) {
  LaunchOutcome outcome = run_launch(
      shell(3, "if [ $LOCKSTEP_RANK = 1 ]; then echo no such file >&2; exit 3; fi; exec sleep 60"));
  EXPECT_EQ(outcome.exit_code, 3);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_NE(outcome.message.find("rank 1 of 3 exited with code 3"), std::string::npos);
  EXPECT_NE(outcome.message.find("| no such file"), std::string::npos) << outcome.message;
  EXPECT_NE(console().find("[rank 1] no such file\n"), std::string::npos);
}

TEST_F(Launcher, BlamesTheKilledRankNotThoseThatLostIt) {
  LaunchOutcome outcome =
      run_launch(shell(3, "if [ $LOCKSTEP_RANK = 2 ]; then sleep 0.2; kill -9 $$; fi; exit 4"));
  EXPECT_EQ(outcome.exit_code, kExitMachine);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->rank, 2);
  EXPECT_NE(outcome.message.find("was killed by SIGKILL"), std::string::npos);
}

TEST_F(Launcher, KillsARankThatDoesNotStopAfterTheGraceTime) {
  Launch launch = shell(
      2,
      "if [ $LOCKSTEP_RANK = 1 ]; then while [ ! -e $1/ready ]; do sleep 0.01; done; exit 5; fi; "
      "trap '' TERM; echo $$ > $1/pid; echo > $1/ready; while :; do sleep 0.1; done");
  launch.supervision.grace = milliseconds(300);
  Clock::time_point start = Clock::now();
  LaunchOutcome outcome = run_launch(launch);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_LT(Clock::now() - start, seconds(5));
  EXPECT_GE(Clock::now() - start, milliseconds(300));
  EXPECT_TRUE(ended(pid_in("pid")));
  EXPECT_NE(console().find("rank 0 did not stop in time: killed"), std::string::npos);
}

TEST_F(Launcher, LeavesNoChildOfARankBehind) {
  EXPECT_EQ(run_launch(shell(1, "sleep 60 & echo $! > $1/child; exit 0")).exit_code, 0);
  pid_t child = pid_in("child");
  EXPECT_TRUE(wait_until([&] { return ended(child); }));
}

TEST_F(Launcher, LeavesNothingBehindWhenItIsKilledItself) {
  Launch launch = shell(2,
                        "trap '' TERM HUP INT; sleep 60 & echo $! > $1/child$LOCKSTEP_RANK; "
                        "echo $$ > $1/pid$LOCKSTEP_RANK; wait; sleep 60");
  pid_t launcher = in_background(launch);
  std::vector<pid_t> pids;
  for (const char* name : {"pid0", "pid1", "child0", "child1"}) pids.push_back(pid_in(name));
  for (pid_t pid : pids) EXPECT_FALSE(ended(pid));
  ::kill(launcher, SIGKILL);
  status_of(launcher);
  for (pid_t pid : pids) {
    EXPECT_TRUE(wait_until([&] { return ended(pid); })) << pid;
    if (!ended(pid)) ::kill(pid, SIGKILL);
  }
}

TEST_F(Launcher, LeavesNothingBehindWhenARankKillsItAtOnce) {
  for (int i = 0; i < 10; ++i) {
    std::string name = "child" + std::to_string(i);
    pid_t launcher =
        in_background(shell(1, "sleep 60 & echo $! > $1/" + name + "; kill -KILL $PPID; wait"));
    status_of(launcher);
    pid_t child = pid_in(name);
    bool over = wait_until([&] { return ended(child); });
    EXPECT_TRUE(over) << name;
    if (!over) ::kill(child, SIGKILL);
  }
}

TEST_F(Launcher, GivesRanksTimeForACheckpointWhenInterrupted) {
  pid_t launcher =
      in_background(shell(2,
                          "trap 'echo saved > $1/saved$LOCKSTEP_RANK; exit 143' TERM; "
                          "echo $$ > $1/pid$LOCKSTEP_RANK; while :; do sleep 0.05; done"));
  pid_in("pid0");
  pid_in("pid1");
  ::kill(launcher, SIGINT);
  int status = status_of(launcher);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(word("saved0"), "saved");
  EXPECT_EQ(word("saved1"), "saved");
}

TEST_F(Launcher, KillsAtOnceAtTheSecondInterrupt) {
  pid_t launcher = in_background(
      shell(1, "trap 'echo > $1/told' TERM; echo $$ > $1/pid; while :; do sleep 0.05; done"));
  pid_t rank = pid_in("pid");
  ::kill(launcher, SIGTERM);
  ASSERT_TRUE(wait_until([&] { return fs::exists(path_ / "told"); }));
  ::kill(launcher, SIGINT);
  int status = status_of(launcher);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143) << "the first signal decides";
  EXPECT_TRUE(ended(rank));
}

TEST_F(Launcher, PassesManyLinesWholeAndInOrder) {
  LaunchOutcome outcome = run_launch(
      shell(2,
            "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $LOCKSTEP_RANK $i; done; "
            "printf last$LOCKSTEP_RANK"));
  EXPECT_EQ(outcome.exit_code, 0);
  std::vector<int> next = {1, 1};
  int last = 0;
  for_each_line(path_ / "shown", [&](std::string_view line, int64_t) {
    int rank = line.rfind("[rank 1] ", 0) == 0 ? 1 : 0;
    std::string text(line.substr(rank == 1 ? 9 : 0));
    if (text == "last" + std::to_string(rank)) {
      ++last;
    } else {
      EXPECT_EQ(text, fmt::format("line {} {}", rank, next[rank]++));
    }
  });
  EXPECT_EQ(next, (std::vector<int>{2001, 2001}));
  EXPECT_EQ(last, 2);
}

TEST_F(Launcher, RefusesBadInputBeforeAnythingStarts) {
  Launch launch = shell(0, "touch $1/started");
  EXPECT_THROW(run_launch(launch), ConfigError);
  launch.ranks = kMostLocalRanks + 1;
  EXPECT_THROW(run_launch(launch), ConfigError);
  launch.ranks = 2;
  launch.command[0] = "no-such-program-anywhere";
  EXPECT_THROW(run_launch(launch), ConfigError);
  launch.command[0] = (path_ / "shown").string();
  EXPECT_THROW(run_launch(launch), ConfigError) << "not executable";
  launch.command.clear();
  EXPECT_THROW(run_launch(launch), ConfigError);
  EXPECT_FALSE(fs::exists(path_ / "started"));
}

TEST_F(Launcher, SaysWhyAProgramCannotBeStarted) {
  Launch launch = shell(2, "");
  write_file(path_ / "broken",
             "\x7F"
             "ELF but no program");
  fs::permissions(path_ / "broken", fs::perms::owner_all);
  launch.command = {(path_ / "broken").string()};
  EXPECT_THROW(run_launch(launch), MachineError);
}

}  // namespace
}  // namespace lockstep
