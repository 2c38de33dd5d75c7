#include "netlab/lab.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/statistics.h"
#include "base/text.h"
#include "support/expect_error.h"
#include "support/net_probe.h"
#include "support/virtual_hosts.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

const char* const kTwo = "[hosts]\nnames = ['a', 'b']\nsshd = false\n";
// Payload of a full packet as a share of what it takes on a wire: 1448 of 1538 bytes.
constexpr double kPayload = 1448.0 / 1538;

TEST(Lab, DelaysEveryPacketByWhatIsAskedOneWay) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  VirtualHosts hosts(kTwo);
  LabEvent set;
  set.action = "set";
  set.hosts = {"a"};
  for (double delay : {5.0, 20.0, 100.0}) {
    set.delay_ms = delay;
    hosts.lab().apply(set);
    // The fastest fifth of packets apart from each other shows what the lab itself adds.
    std::vector<double> there_and_back =
        ping(hosts.lab(), "a", "b", {.count = 20, .every_seconds = 0.02});
    std::sort(there_and_back.begin(), there_and_back.end());
    EXPECT_GE(there_and_back.front(), 2e-3 * delay * 0.999);
    EXPECT_LE(there_and_back[4], 2e-3 * delay * 1.05 + 1e-3);
  }
}

TEST(Lab, CarriesTheRateThatIsAsked) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  VirtualHosts hosts(kTwo);
  LabEvent set;
  set.action = "set";
  set.hosts = {"a", "b"};
  for (double rate : {100.0, 1000.0}) {
    set.rate_mbit = rate;
    hosts.lab().apply(set);
    EXPECT_NEAR(tcp_rate(hosts.lab(), "a", "b", 1.2) / 1e6, rate * kPayload, rate * 0.05);
  }
}

TEST(Lab, LosesTheShareOfPacketsThatIsAsked) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  VirtualHosts hosts(kTwo);
  LabEvent set;
  set.action = "set";
  set.hosts = {"a"};
  set.direction = "out";
  set.loss = 0.1;
  hosts.lab().apply(set);
  constexpr int kCount = 4000;
  std::vector<double> times = ping(hosts.lab(), "a", "b", {.count = kCount, .every_seconds = 1e-4});
  auto lost = std::count_if(times.begin(), times.end(), [](double t) { return t < 0; });
  EXPECT_NEAR(static_cast<double>(lost) / kCount, 0.1, 0.02);  // four standard deviations
  // IPv6's own packets, which nobody asked for, may be lost too.
  EXPECT_NEAR(static_cast<double>(hosts.lab().counts("a").lost), static_cast<double>(lost), 8);
}

TEST(Lab, SpreadsDelaysEvenlyOverTheJitter) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  VirtualHosts hosts(std::string(kTwo) +
                     "[[link]]\nhosts = ['a']\nto = ['b']\ndirection = 'out'\n"
                     "delay_ms = 20\njitter_ms = 10\n");
  // Farther apart than the jitter: packets of a path do not overtake each other.
  std::vector<double> times =
      ping(hosts.lab(), "a", "b", {.count = 60, .every_seconds = 0.022, .wait_seconds = 0.1});
  EXPECT_NEAR(mean(times), 0.020, 0.003);  // standard error 0.75 ms
  EXPECT_GE(*std::min_element(times.begin(), times.end()), 0.0099);
  EXPECT_LT(*std::min_element(times.begin(), times.end()), 0.014);
  EXPECT_GT(*std::max_element(times.begin(), times.end()), 0.026);
}

TEST(Lab, CutsHealsAndCutsOneWay) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  VirtualHosts hosts(kTwo);
  auto answered = [&] {
    std::vector<double> times =
        ping(hosts.lab(), "a", "b", {.count = 3, .every_seconds = 0.01, .wait_seconds = 0.1});
    return std::count_if(times.begin(), times.end(), [](double t) { return t >= 0; });
  };
  EXPECT_EQ(answered(), 3);
  hosts.cut("b");
  EXPECT_EQ(answered(), 0);
  hosts.heal("b");
  EXPECT_EQ(answered(), 3);
  hosts.cut_outgoing("b");
  uint64_t before = hosts.lab().counts("b").frames_out;
  EXPECT_EQ(answered(), 0);
  EXPECT_GE(hosts.lab().counts("b").frames_out, before + 3);  // what a sends still arrives
  hosts.heal("b");
  hosts.cut("b", 0.3);
  EXPECT_EQ(answered(), 0);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(answered(), 3);
}

TEST(Lab, HostsReachEachOtherBySsh) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  VirtualHosts hosts("[hosts]\nnames = ['a', 'b']\n");
  auto [code, text] = hosts.run("control", "ssh a 'hostname; ssh b hostname'");
  EXPECT_EQ(code, 0);
  EXPECT_EQ(text, "a\nb\n");
}

TEST(Lab, PowerOffEndsEverythingSilentlyAndPowerOnBootsAgain) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  VirtualHosts hosts("[hosts]\nnames = ['a']\n");
  auto sleeper = hosts.start("a", {"sleep", "100"});
  auto session = hosts.start("control", {"ssh", "a", "echo there; sleep 100"});
  ASSERT_GE(session->wait_for("there", 20s), 0);
  hosts.power_off("a");
  EXPECT_EQ(sleeper->wait(2s), 128 + SIGKILL);
  EXPECT_EQ(session->wait(300ms), -1);  // nobody told it: as with a real machine
  EXPECT_THROW(hosts.start("a", {"true"}), MachineError);
  hosts.power_on("a");
  EXPECT_EQ(hosts.run("control", "ssh a hostname"), std::pair(0, std::string("a\n")));
}

TEST(Lab, ADecoyComesFirstAndHidesTheHostsOwnAddress) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  VirtualHosts hosts("[hosts]\nnames = ['a', 'b']\ndecoy = true\nsshd = false\n");
  std::string text = hosts.run("a", "getent hosts a b; cat /proc/net/dev").second;
  EXPECT_NE(text.find("127.0.1.1"), std::string::npos);
  EXPECT_NE(text.find("10.77.0.2"), std::string::npos);
  EXPECT_LT(text.find("docker0"), text.find("eth0"));
}

TEST(Lab, PrivateFoldersAndTheirSizeAreEachHostsOwn) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  TemporaryFolder folder;
  std::string its = (folder.path() / "disk").string();
  VirtualHosts hosts("[hosts]\nnames = ['a', 'b']\nsshd = false\ndisk_mb = 1\nprivate = ['" + its +
                     "']\n");
  EXPECT_EQ(hosts.run("a", "echo x > " + its + "/file").first, 0);
  EXPECT_NE(hosts.run("b", "cat " + its + "/file").first, 0);
  EXPECT_NE(hosts.run("b", "head -c 2000000 /dev/zero > " + its + "/file").first, 0);
}

TEST(Lab, LimitsAHostsProcessorTime) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  std::unique_ptr<VirtualHosts> hosts;
  try {
    hosts = std::make_unique<VirtualHosts>("[hosts]\nnames = ['a']\nsshd = false\ncpu = 0.1\n");
  } catch (const MachineError& error) {
    GTEST_SKIP() << error.describe();
  }
  std::string text = hosts
                         ->run("a",
                               "timeout 1 sh -c 'while :; do :; done'; cat /proc/self/cgroup; "
                               "times")
                         .second;
  // The last line: user and system time of the shell's children.
  std::vector<std::string> lines = split(std::string(trim(text)), '\n');
  double minutes = 0, spent = 0;
  ASSERT_EQ(std::sscanf(lines.back().c_str(), "%lfm%lfs", &minutes, &spent), 2) << text;
  EXPECT_LT(spent, 0.25) << text;
}

TEST(Lab, NothingIsLeftAfterItsProcessWasKilled) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  TemporaryFolder folder;
  fs::path report = folder.path() / "report";
  pid_t pid = ::fork();
  if (pid == 0) {
    VirtualHosts hosts("[hosts]\nnames = ['a']\n");
    auto sleeper = hosts.start("a", {"sleep", "100"});
    write_file(report, fmt::format("{} {}", sleeper->pid(), hosts.lab().folder().string()));
    ::pause();
  }
  for (int i = 0; i < 2000 && !fs::exists(report); ++i) std::this_thread::sleep_for(5ms);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ASSERT_TRUE(fs::exists(report));
  std::string text = read_file(report);
  std::vector<std::string> parts = split(text, ' ');
  auto left = [&] { return fs::exists("/proc/" + parts[0]) || fs::exists(parts[1]); };
  for (int i = 0; i < 1000 && left(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(fs::exists("/proc/" + parts[0]));
  EXPECT_FALSE(fs::exists(parts[1]));
}

// Users, homes and files of their own; only the control host has the key.
constexpr const char* kUnshared =
    "[hosts]\nnames = ['a', 'b']\nfiles = 'own'\n"
    "[[host]]\nname = 'a'\nuser = 'ana'\n"
    "[[host]]\nname = 'b'\nuser = 'ben'\nhome = '/data/people/ben'\n";

TEST(Lab, HostsMayShareNoFiles) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  VirtualHosts hosts(kUnshared);
  const auto [code, who] = hosts.run("control", "ssh a 'echo $(whoami) $PWD'; ssh b pwd");
  EXPECT_EQ(who, "ana /home/ana\n/data/people/ben\n");
  const std::string here = fs::canonical(LOCKSTEP_PROGRAM).string();
  const std::string writes =
      "ssh a 'echo of a >file; echo of a >/tmp/file; ls " + here + " 2>&1; ls /dev/shm'";
  EXPECT_NE(hosts.run("control", writes).second.find("No such file"), std::string::npos);
  EXPECT_EQ(hosts.run("control", "ssh b 'cat file /tmp/file /home/ana/file 2>/dev/null'").second,
            "");
  EXPECT_EQ(read_file(hosts.lab().path_on_this_machine("a", "/home/ana/file")), "of a\n");
  EXPECT_NE(hosts.run("control", "ssh a 'ssh -o ConnectTimeout=5 b true'").first, 0) << "no key";
  const auto [wrote, said] = hosts.run("a", "echo x >/etc/of-a; echo x >/usr/of-a; cat /etc/of-a");
  EXPECT_EQ(wrote, 0) << said;
  EXPECT_FALSE(fs::exists("/etc/of-a"));
  EXPECT_FALSE(fs::exists("/usr/of-a"));
  EXPECT_NE(hosts.run("b", "cat /etc/of-a /usr/of-a").first, 0);
  hosts.power_off("a");
  hosts.power_on("a");
  EXPECT_EQ(hosts.run("control", "ssh a 'cat file /etc/of-a'").second, "of a\nx\n")
      << "a disk outlives a power loss";
}

TEST(Lab, HostsOfTheirOwnFilesBeginWithTheContentsThatAreGiven) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  TemporaryFolder given;
  write_file(given.path() / "one", "1\n");
  const std::string home = "[[host]]\nname = 'a'\nuser = 'ana'\n";
  VirtualHosts hosts("[hosts]\nnames = ['a']\nfiles = 'own'\ncontents = ['" +
                     given.path().string() + ":/opt/given']\n" + home);
  EXPECT_EQ(hosts.run("control", "ssh a 'cd /opt/given; cat one; echo 2 >two; cat two'").second,
            "1\n2\n");
  EXPECT_FALSE(fs::exists(given.path() / "two"));
}

TEST(LabConfig, SaysEveryMistakeWithItsPlace) {
  const char* text =
      "[network]\ndelay_ms = -1\nrate = 5\n[hosts]\nnames = ['a', 'a', 'b_c']\n"
      "[[event]]\nat = 1\naction = 'cutt'\nhosts = ['a']\n"
      "[[event]]\naction = 'set'\nhosts = ['x']\n";
  try {
    read_lab_config(text, "lab.toml");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    for (const char* words :
         {"lab.toml:2:12: network.delay_ms: expected", "network.rate: unknown key",
          "hosts.names: \"a\" stands there twice", "hosts.names: \"b_c\": expected letters",
          "lab.toml:8:10: event[0].action: expected one of", "did you mean cut",
          "event[1].hosts: no host \"x\"", "event[1].action: \"set\" sets nothing"}) {
      EXPECT_NE(error.describe().find(words), std::string::npos) << words << "\n" << error.what();
    }
  }
}

TEST(LabConfig, RefusesWhatMakesNoSense) {
  auto wrong = [](const std::string& text, const std::string& words) {
    EXPECT_ERROR(read_lab_config(text, "lab"), ConfigError, words);
  };
  wrong("", "hosts.names: expected 1 to 64 names");
  wrong("[hosts]\nnames = ['control']\n", "\"control\" is taken");
  wrong("[network]\nsubnet = '10.0.0.1'\n[hosts]\nnames = ['a']\n", "that end in 0");
  wrong(std::string(kTwo) + "private = ['x']\n", "expected absolute paths");
  wrong(std::string(kTwo) + "[[event]]\naction = 'power-off'\nhosts = ['control']\n", "stays on");
  wrong(std::string(kTwo) + "contents = ['/x:/y']\n", "needs hosts.files = \"own\"");
  wrong(std::string(kTwo) + "[[host]]\nname = 'a'\nuser = 'ana'\n",
        "host[0].user: needs hosts.files");
  wrong(std::string(kTwo) + "files = 'own'\n[[host]]\nname = 'a'\nhome = '/x'\n",
        "of a user who is not root");
  wrong(std::string(kTwo) + "[[link]]\nhosts = ['a']\nto = ['b']\nrate_mbit = 1\n", "no `to`");
}

}  // namespace
}  // namespace lockstep
