// Hosts that share nothing with this machine but the key that opens them: what they need goes from
// host to host.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <regex>

#include "support/digests_below.h"
#include "support/expect_says.h"
#include "support/hosts_apart.h"
#include "support/random_text.h"

namespace lockstep {
namespace {

using namespace std::string_literals;
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
  static std::map<std::string, std::string> contents(const HostsApart& hosts,
                                                     const std::string& host) {
    return digests_below(hosts.lab().path_on_this_machine(host, "/tmp/corpus"));
  }

  TemporaryFolder folder_;
};

// The changes of files that a host's shells and their programs make; one can be made to fail.
class ChangesOfHost {
 public:
  ChangesOfHost(HostsApart& hosts, const std::string& host) : hosts_(hosts), host_(host) {
    hosts.put(host, LOCKSTEP_FAILING_FILES, "failing.so");
    const std::string shell = fmt::format(
        "#!/usr/bin/dash\nexport LD_PRELOAD={0}/failing.so LOCKSTEP_FAILING_FILES=@{0}/plan "
        "LOCKSTEP_COUNTED_FILES={0}/count\nexec /usr/bin/dash \"$@\"\n",
        hosts.home(host).string());
    hosts.put_text(host, "sh", shell);
    const auto [code, said] = hosts.run(
        host, fmt::format("install -m 755 {}/sh /usr/local/bin", hosts.home(host).string()));
    if (code != 0) throw std::runtime_error(said);
  }
  // `what` of failing_files.h becomes of the n-th change below `root` from now on.
  void plan(const std::string& root, long nth, const std::string& what) {
    hosts_.put_text(host_, "plan", fmt::format("{} {} {}\n", root, nth, what));
    hosts_.put_text(host_, "count", "");
  }
  long count() const {
    const std::string bytes = read_file(hosts_.file(host_, "count"));
    long out = 0;
    std::memcpy(&out, bytes.data(), std::min(bytes.size(), sizeof out));
    return out;
  }

 private:
  HostsApart& hosts_;
  std::string host_;
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

// b gets it from a and passes it on to c.
TEST_F(UnsharedHosts, AHostInTheMiddleMayFailAnywhere) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  write_file(folder_.path() / "large", bytes_of(5 << 20));
  write_file(folder_.path() / "small", "small\n");
  HostsApart hosts = three();
  ChangesOfHost changes(hosts, "b");
  const auto begin = [&](const std::string& root, long nth, const std::string& what) {
    for (const std::string& host : hosts.names()) hosts.run(host, "rm -rf /tmp/corpus");
    changes.plan(root, nth, what);
  };
  std::map<std::string, std::string> whole;
  // Of the transfer, which then comes to b and c from here, and of what b does with the files.
  for (const std::string& root : {hosts.home("b").string() + "/.lockstep/links", "/tmp/corpus"s}) {
    begin(root, 0, "none");
    const auto [code, said] = copy(hosts);
    ASSERT_EQ(code, 0) << said;
    if (whole.empty()) whole = contents(hosts, "a");
    ASSERT_EQ(whole.size(), 2u);
    const long all = changes.count();
    ASSERT_GT(all, 4);
    std::vector<long> points{all / 2};
    if (std::getenv("LOCKSTEP_EVERY_CRASH_POINT") != nullptr) {
      points.clear();
      for (long nth = 1; nth <= all; nth += all / 100 + 1) points.push_back(nth);
    }
    for (const char* fault : {"kill", "power", "ENOSPC"}) {
      for (const long nth : points) {
        begin(root, nth, fault);
        const auto [failed, words] = copy(hosts);
        const std::string when =
            fmt::format("{} in change {} of {} below {}: {}", fault, nth, all, root, words);
        EXPECT_TRUE(failed == 0 || failed == 4) << when;
        EXPECT_EQ(contents(hosts, "a"), whole) << when;
        EXPECT_EQ(contents(hosts, "c"), whole) << when;
        for (const auto& [name, digest] : contents(hosts, "b")) {
          EXPECT_EQ(digest, whole.at(name)) << when;
        }
        if (failed == 0) {
          EXPECT_EQ(contents(hosts, "b"), whole) << when;
        }
        changes.plan(root, 0, "none");
        const auto [again, last] = copy(hosts);
        ASSERT_EQ(again, 0) << when << last;
        EXPECT_EQ(contents(hosts, "b"), whole) << when;
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
