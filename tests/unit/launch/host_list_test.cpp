#include "launch/hosts/host_list.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

HostList words(const std::string& text, int ranks_per_host = 0) {
  return read_hosts({.hosts = text, .ranks_per_host = ranks_per_host});
}

class HostFile : public ::testing::Test {
 protected:
  HostList read(const std::string& text, int ranks_per_host = 0) {
    write_file(path(), text);
    return read_hosts({.hosts_file = path(), .ranks_per_host = ranks_per_host});
  }
  std::string path() const { return (folder_.path() / "hosts.txt").string(); }
  TemporaryFolder folder_;
};

TEST(HostList, TakesTheFormOfMpirun) {
  HostList list = words("a:2,root@b,10.0.0.7:3,[fe80::1]:4,me@[::1]");
  ASSERT_EQ(list.hosts.size(), 5u);
  EXPECT_EQ(list.ranks(), 2 + 1 + 3 + 4 + 1);
  EXPECT_EQ(list.source, "-H");
  EXPECT_EQ(list.hosts[0].name, "a");
  EXPECT_EQ(list.hosts[0].address, "");
  EXPECT_FALSE(list.hosts[0].by_ssh);
  EXPECT_EQ(list.hosts[1].name, "b");
  EXPECT_EQ(list.hosts[1].ssh_name, "root@b");
  EXPECT_TRUE(list.hosts[1].by_ssh);
  EXPECT_EQ(list.hosts[2].address, "10.0.0.7");
  EXPECT_EQ(list.hosts[3].name, "fe80::1");
  EXPECT_EQ(list.hosts[3].slots, 4);
  EXPECT_EQ(list.hosts[4].ssh_name, "me@::1");
}

TEST(HostList, WithoutAnySourceIsEmpty) { EXPECT_TRUE(read_hosts(HostOptions{}).hosts.empty()); }

TEST(HostList, TakesRanksPerHostWhereAHostSaysNone) {
  EXPECT_EQ(words("a,b", 4).ranks(), 8);
  EXPECT_EQ(words("a:4,b", 4).ranks(), 8);
  EXPECT_ERROR(words("a:2,b", 4), ConfigError, "-H gives a 2 ranks, --ranks-per-host 4");
  EXPECT_ERROR(words("a", -1), ConfigError, "--ranks-per-host -1: expected a number from 1");
}

TEST(HostList, LeavesTheNumberOfRanksToTheMachineWhereItSaysAuto) {
  const HostList list = words("a:auto,b:2,[fe80::1]:auto");
  EXPECT_TRUE(list.has_auto());
  EXPECT_EQ(list.hosts[0].slots, kAutoSlots);
  EXPECT_EQ(list.hosts[1].slots, 2);
  EXPECT_EQ(list.hosts[2].slots, kAutoSlots);
  EXPECT_FALSE(words("a,b:2").has_auto());
  const HostList all = read_hosts({.hosts = "a,b:2", .otherwise_slots = kAutoSlots});
  EXPECT_EQ(all.hosts[0].slots, kAutoSlots);
  EXPECT_EQ(all.hosts[1].slots, 2) << "it has a number of its own";
  EXPECT_ERROR(words("a:auto", 2), ConfigError, "-H gives a auto ranks, --ranks-per-host 2");
}

TEST(HostList, NamesWhatIsWrongWithAWord) {
  EXPECT_ERROR(words("a:0"), ConfigError, "slots \"0\": expected a number of ranks from 1");
  EXPECT_ERROR(words("a:x"), ConfigError, "slots \"x\"");
  EXPECT_ERROR(words("a,,b"), ConfigError, "-H a,,b: a name of a host is missing");
  EXPECT_ERROR(words("fe80::1"), ConfigError, "an IPv6 address stands in brackets: [fe80::1]:2");
  EXPECT_ERROR(words("[fe80::1"), ConfigError, "expected [ADDRESS] or [ADDRESS]:SLOTS");
  EXPECT_ERROR(words("[host]:2"), ConfigError, "expected a numeric address");
  EXPECT_ERROR(words("-oProxyCommand=x"), ConfigError, "is no name of a host");
  EXPECT_ERROR(words("a;reboot"), ConfigError, "\"a;reboot\" is no name of a host");
  EXPECT_ERROR(words("-x@a"), ConfigError, "\"-x\" is no name of a host");
}

TEST(HostList, RefusesAHostThatAppearsTwice) {
  EXPECT_ERROR(words("a,b,a"), ConfigError, "-H: a appears twice");
  EXPECT_ERROR(words("a,root@a"), ConfigError, "a appears twice");
}

TEST(HostList, RefusesTwoSources) {
  EXPECT_ERROR(read_hosts({.hosts = "a", .instances = "i.json"}), ConfigError,
               "-H and --instances name the hosts: give one of them");
}

TEST_F(HostFile, TakesOurFormAndThoseOfMpi) {
  HostList list = read(
      "# the cluster\n"
      "a slots=2 ssh=admin@gate-a address=10.0.0.1  # first\n"
      "\n"
      "b:3\n"
      "c slots=1 max_slots=4\n"
      "d\n");
  ASSERT_EQ(list.hosts.size(), 4u);
  EXPECT_EQ(list.source, path());
  EXPECT_EQ(list.hosts[0].ssh_name, "admin@gate-a");
  EXPECT_EQ(list.hosts[0].address, "10.0.0.1");
  EXPECT_TRUE(list.hosts[0].by_ssh);
  EXPECT_EQ(list.hosts[1].slots, 3);
  EXPECT_EQ(list.ranks(), 2 + 3 + 1 + 1);
  EXPECT_EQ(read("a slots=2\nb\n", 4).ranks(), 8);
}

TEST_F(HostFile, MayLeaveTheNumberOfRanksToTheMachine) {
  const HostList list = read("a slots=auto\nb:auto\nc slots=3\n");
  EXPECT_EQ(list.hosts[0].slots, kAutoSlots);
  EXPECT_EQ(list.hosts[1].slots, kAutoSlots);
  EXPECT_EQ(list.hosts[2].slots, 3);
  EXPECT_EQ(read("a slots=auto max_slots=2\n").hosts[0].slots, kAutoSlots);
  EXPECT_ERROR(read("a:auto slots=3\n"), ConfigError, "hosts.txt:1: slots twice");
  EXPECT_ERROR(read("a max_slots=auto\n"), ConfigError, "hosts.txt:1: slots \"auto\"");
}

TEST_F(HostFile, NamesTheLineOfAMistake) {
  EXPECT_ERROR(read("a\nb slot=2\n"), ConfigError,
               "hosts.txt:2: \"slot=2\": expected slots=N, ssh=NAME, address=ADDRESS or "
               "price=PRICE; did you "
               "mean slots?");
  EXPECT_ERROR(read("a b\n"), ConfigError, "hosts.txt:1: \"b\"");
  EXPECT_ERROR(read("a slots=999\n"), ConfigError, "hosts.txt:1: slots \"999\"");
  EXPECT_ERROR(read("a:2 slots=3\n"), ConfigError, "hosts.txt:1: slots twice");
  EXPECT_ERROR(read("a slots=3 max-slots=2\n"), ConfigError, "3 slots, but max_slots=2");
  EXPECT_ERROR(read("a address=b\n"), ConfigError, "address \"b\": expected a numeric address");
  EXPECT_ERROR(read("a address=10.0.0.1\nb address=10.0.0.1\n"), ConfigError,
               "hosts.txt:2: 10.0.0.1 appears twice\n  because: it stands at " + path() + ":1");
  EXPECT_ERROR(read("# nothing\n"), ConfigError, "no hosts in it");
  EXPECT_ERROR(read_hosts({.hosts_file = "/no/such"}), ConfigError, "--hosts /no/such: no such");
}

}  // namespace
}  // namespace lockstep
