// Hosts that share nothing with this machine but the key that opens them: what they need goes from
// host to host.
#include <gtest/gtest.h>

#include <regex>

#include "base/digest.h"
#include "support/expect_says.h"
#include "support/hosts_apart.h"
#include "support/random_text.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

HostsApart three(const std::string& more = "") {
  return HostsApart({.names = {"a", "b", "c"}, .more = more, .program = ApartProgram::kNone});
}

std::string bytes_of(std::size_t count) {
  std::string out(count, '\0');
  uint32_t state = 1;
  for (char& c : out) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return out;
}

class UnsharedHosts : public ::testing::Test {
 protected:
  // Copies a folder to ~/corpus of all hosts.
  std::pair<int, std::string> copy(VirtualHosts& hosts, const std::string& words = "") const {
    return hosts.run(
        "control",
        fmt::format("'{}' cluster setup -H a,b,c --no-program --copy {}:/tmp/corpus {}",
                    LOCKSTEP_PROGRAM, folder_.path().string(), words),
        seconds(60));
  }
  TemporaryFolder folder_;
};

TEST_F(UnsharedHosts, FilesGoFromHostToHostAndTheKeysAreRemoved) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  const std::string text = bytes_of(12 << 20);
  write_file(folder_.path() / "large", text);
  fs::create_directory(folder_.path() / "deep");
  write_file(folder_.path() / "deep/a b", "small\n");
  HostsApart hosts = three();
  const uint64_t before = hosts.lab().counts(kControlHost).bytes_in;
  const auto [code, said] = copy(hosts);
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "a: /tmp/corpus: 2 of 2 files copied, 12.6 MB in ");
  EXPECT_TRUE(std::regex_search(said, std::regex("b: .*, 12\\.6 MB in [0-9.]+ s, from a\n")))
      << said;
  EXPECT_TRUE(std::regex_search(said, std::regex("c: .*, 12\\.6 MB in [0-9.]+ s, from b\n")))
      << said;
  const double sent = static_cast<double>(hosts.lab().counts(kControlHost).bytes_in - before);
  EXPECT_LT(sent, 1.3 * static_cast<double>(text.size())) << "once over this machine's line";
  for (const char* host : {"a", "b", "c"}) {
    const fs::path there = hosts.lab().path_on_this_machine(host, "/tmp/corpus");
    EXPECT_EQ(read_file(there / "large"), text) << host;
    EXPECT_EQ(read_file(there / "deep/a b"), "small\n") << host;
  }
  EXPECT_EQ(hosts.run("control", "ssh b 'wc -l <.ssh/authorized_keys; ls .lockstep/links'").second,
            "1\n");
  expect_says(copy(hosts).second, "c: /tmp/corpus: 2 files, none changed");
}

TEST_F(UnsharedHosts, AHostThatTheOthersDoNotReachIsSentToFromHere) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  write_file(folder_.path() / "large", bytes_of(6 << 20));
  HostsApart hosts = three("[[event]]\nat = 0\naction = 'cut'\nhosts = ['c']\nto = ['a', 'b']\n");
  hosts.lab().start_schedule();
  const auto [code, said] = copy(hosts);
  ASSERT_EQ(code, 0) << said;
  EXPECT_TRUE(std::regex_search(said, std::regex("b: .*, 6\\.3 MB in [0-9.]+ s, from a\n")))
      << said;
  expect_says(said, "c: b does not reach it: sent from here");
  EXPECT_TRUE(std::regex_search(said, std::regex("c: .*, 6\\.3 MB in [0-9.]+ s\n"))) << said;
}

TEST_F(UnsharedHosts, AHostThatFailsKeepsNothingFromTheNext) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  write_file(folder_.path() / "large", bytes_of(6 << 20));
  HostsApart hosts = three();
  hosts.run("b", "mkdir /tmp/corpus; chmod 555 /tmp/corpus");
  const auto [code, said] = copy(hosts);
  EXPECT_EQ(code, 4) << said;
  expect_says(said, "1 of 3 hosts could not be made ready");
  expect_says(said, "b: ");
  EXPECT_TRUE(std::regex_search(said, std::regex("c: .*, 6\\.3 MB in [0-9.]+ s, from b\n")))
      << said;
}

}  // namespace
}  // namespace lockstep
