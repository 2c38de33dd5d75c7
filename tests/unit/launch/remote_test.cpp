#include "launch/hosts/remote.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

constexpr int exited(int code) { return code << 8; }  // as waitpid gives it

Host here(const std::string& name = "localhost") { return {.name = name, .ssh_name = name}; }

// A process that nobody has reaped yet is gone as well.
bool runs(pid_t pid) {
  std::string text;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", pid)), text);
  return !text.empty() && text.find(") Z ") == std::string::npos;
}

std::string error_of(int status, const std::string& text) {
  Host host{.name = "a", .ssh_name = "me@a.example"};
  return remote_error(host, status, text).describe();
}

TEST(Remote, QuotesAWordForAnyShell) { EXPECT_EQ(shell_quote("it's $HOME"), R"('it'\''s $HOME')"); }

TEST(Remote, NamesTheLibraryThatAProgramLacks) {
  constexpr const char* kSaid = "a: the program there lacks a library: libx.so.1";
  const std::string why = "libx.so.1: cannot open shared object file: No such file or directory\n";
  EXPECT_NE(
      error_of(127 << 8, "lockstep: error while loading shared libraries: " + why).find(kSaid),
      std::string::npos);
  EXPECT_NE(error_of(4 << 8, "error: cannot load liblockstep_computing.so: " + why).find(kSaid),
            std::string::npos);
  EXPECT_EQ(error_of(4 << 8, "error: cannot load liblockstep_computing.so: it is not there\n")
                .find("lacks a library"),
            std::string::npos);
}

TEST(Remote, PutsTheUsersOptionsBeforeItsOwn) {
  RemoteOptions options{.ssh_config = "conf",
                        .port = 2222,
                        .user = "me",
                        .key = "key",
                        .extra = {"ConnectTimeout=3"}};
  std::string line = join(ssh_command(here("a"), options, "echo 'hi'"), " ");
  EXPECT_TRUE(
      line.starts_with("ssh -F conf -o ConnectTimeout=3 -p 2222 -l me -i key "
                       "-o ConnectTimeout=10 -o BatchMode=yes"))
      << line;
  EXPECT_TRUE(line.ends_with(R"(-- a exec /bin/sh -c 'echo '\''hi'\''')")) << line;
}

TEST(Remote, KnowsThisMachine) {
  EXPECT_TRUE(is_this_machine(here()));
  EXPECT_TRUE(is_this_machine(here("127.0.0.1")));
  EXPECT_TRUE(is_this_machine({.name = "x", .ssh_name = "x", .address = "127.0.0.1"}));
  EXPECT_FALSE(is_this_machine({.name = "x", .ssh_name = "localhost", .address = "192.0.2.1"}));
  EXPECT_FALSE(is_this_machine(here("192.0.2.1")));
  EXPECT_FALSE(is_this_machine({.name = "localhost", .ssh_name = "me@localhost", .by_ssh = true}));
}

TEST(Remote, TellsSshsFailuresApart) {
  EXPECT_EQ(error_of(exited(255), "ssh: Could not resolve hostname a.example: Name unknown\n"),
            "a: the name me@a.example does not resolve\n"
            "  because: ssh: Could not resolve hostname a.example: Name unknown\n"
            "  try: a name that `getent hosts me@a.example` or ~/.ssh/config knows, or the host's "
            "address");
  auto says = [](int status, const std::string& text, const std::string& words) {
    EXPECT_NE(error_of(status, text).find(words), std::string::npos) << error_of(status, text);
  };
  says(exited(255), "ssh: connect to host a port 22: Connection refused", "nothing listens");
  says(exited(255), "ssh: connect to host a port 22: Connection timed out", "security group");
  says(exited(255), "me@a: Permission denied (publickey).", "refused our key");
  says(exited(255), "Host key verification failed.", "its host key is unknown");
  says(exited(255),
       "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
       "not the one known before");
  says(exited(255), "Timeout, server a not responding.", "the connection was lost");
  says(exited(255), "", "a signal ended the command there");
  says(exited(127), "lockstep: no such program on this host", "no lockstep there");
  says(exited(127), "sh: 1: foo: not found", "because: sh: 1: foo: not found");
  says(exited(137), "", "killed by SIGKILL");
  says(exited(2), "tar: a: Cannot write: No space left on device", "its disk is full");
  says(exited(3), "error: no such file", "exited with code 3\n  because: error: no such file");
  says(SIGKILL, "\nno end within 5 s", "a: no answer\n  because: no end within 5 s");
  says(SIGTERM, "", "ssh was killed by SIGTERM");
}

TEST(Remote, RunsOnThisMachineWithoutSsh) {
  HostList hosts{.hosts = {here(), here("127.0.0.1")}};
  RemoteOptions options{.ssh = "/no/ssh"};
  auto results =
      run_on_hosts(hosts, options, "echo out; echo err >&2; cat; exit 3", std::chrono::seconds(10));
  ASSERT_EQ(results.size(), 2u);
  for (const RemoteResult& result : results) {
    EXPECT_EQ(result.status, exited(3));
    EXPECT_EQ(result.output, "out\n");
    EXPECT_EQ(result.error, "err\n");
  }
  EXPECT_EQ(results[1].host, &hosts.hosts[1]);
}

TEST(Remote, EndsWhatTakesTooLong) {
  HostList hosts{.hosts = {here()}};
  auto results = run_on_hosts(hosts, {}, "echo begun; sleep 100; true", std::chrono::seconds(1));
  EXPECT_TRUE(results[0].timed_out);
  EXPECT_EQ(results[0].output, "begun\n");
  EXPECT_LT(results[0].seconds, 5);
  EXPECT_ERROR(throw remote_error(hosts.hosts[0], results[0].status, results[0].error),
               MachineError, "no end within 1 s");
}

TEST(Remote, RunsAFewAtATimeAndShowsAllOutput) {
  std::vector<Host> hosts(20, here());
  std::vector<RemoteJob> jobs;
  for (const Host& host : hosts) {
    jobs.push_back({.host = &host, .shell_text = "head -c 300000 /dev/zero"});
  }
  std::size_t shown = 0, ended = 0;
  RemoteRun run{.at_once = 3};
  run.on_output = [&](std::size_t, Stream, std::string_view bytes) { shown += bytes.size(); };
  run.on_end = [&](std::size_t, const RemoteResult& result) { ended += result.status == 0; };
  auto results = run_jobs(jobs, {}, run);
  EXPECT_EQ(shown, 20u * 300000);
  EXPECT_EQ(ended, 20u);
  EXPECT_LE(results[0].output.size(), 131072u);  // the end of it is kept
}

TEST(Remote, FeedsWhatALocalCommandWrites) {
  Host host = here();
  auto feed = [&](const std::string& feeder, const std::string& reader) {
    return run_jobs({{.host = &host, .shell_text = reader, .feeder = {"/bin/sh", "-c", feeder}}},
                    {}, {.limit = std::chrono::seconds(10)})[0];
  };
  EXPECT_EQ(feed("head -c 1000000 /dev/zero", "wc -c").output, "1000000\n");
  RemoteResult broken = feed("echo half; echo no disk >&2; exit 2", "cat");
  EXPECT_EQ(broken.status, exited(2));
  EXPECT_EQ(broken.error, "no disk\n");
  EXPECT_EQ(feed("yes", "exit 5").status, exited(5));  // a reader that does not wait for the end
  EXPECT_EQ(feed("yes", "exit 0").status, 0);
  EXPECT_EQ(feed("yes; exit $?", "exec <&-; sleep 0.2").status, 0);  // a shell tells it by 128 + 13
}

TEST(Remote, EndsAllThatACommandStartedWhenItsConnectionEnds) {
  TemporaryFolder folder;
  std::string marker = (folder.path() / "pid").string();
  Host host = here();
  RemoteJob job{.host = &host,
                .shell_text = "sleep 100 & echo $! > " + marker + "; wait",
                .ends_with_us = true};
  auto result = run_jobs({job}, {}, {.limit = std::chrono::seconds(1)})[0];
  EXPECT_TRUE(result.timed_out);
  pid_t left = std::stoi(read_file(marker));
  for (int i = 0; i < 100 && runs(left); ++i) ::usleep(10000);
  EXPECT_FALSE(runs(left));
  job.shell_text = "exit 7";
  EXPECT_EQ(run_jobs({job}, {}, {})[0].status, exited(7));
}

TEST(Remote, FindsLockstepOnAHost) {
  TemporaryFolder home;
  Host host = here();
  auto run = [&](const RemoteOptions& options) {
    std::string text =
        "HOME=" + home.path().string() + "; " + lockstep_text(options, {"it's", "$x"});
    return run_jobs({{.host = &host, .shell_text = text}}, {}, {})[0];
  };
  fs::create_directories(home.path() / ".lockstep/current");
  fs::path program = home.path() / ".lockstep/current/lockstep";
  write_file(program, "#!/bin/sh\nprintf '%s|' \"$@\"\n");
  fs::permissions(program, fs::perms::owner_all);
  EXPECT_EQ(run({}).output, "it's|$x|");
  RemoteResult none = run({.program = "/no/such/lockstep"});
  EXPECT_ERROR(throw remote_error(host, none.status, none.error), MachineError,
               "no lockstep there");
}

}  // namespace
}  // namespace lockstep
