#include "launch/hosts/host_address.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "dist/rank/network.h"

namespace lockstep {
namespace {

TEST(HostAddress, IsTheOneGivenElseTheNamesWhereItIsTheHostsElseThatOfSsh) {
  Host host{.name = "10.77.0.1", .ssh_name = "me@10.77.0.1"};
  HostAddresses known;
  EXPECT_EQ(address_for_others(host, known), "10.77.0.1");  // nothing else is known
  known.by_ssh = "10.77.1.1";
  EXPECT_EQ(address_for_others(host, known), "10.77.1.1");  // the name's may be a gateway's
  known.its_own = {"10.77.1.1", "10.77.0.1"};
  EXPECT_EQ(address_for_others(host, known), "10.77.0.1");
  host.address = "192.0.2.7";
  EXPECT_EQ(address_for_others(host, known), "192.0.2.7");
}

TEST(HostAddress, IsNeverLoopback) {
  const Host host{.name = "127.0.1.1", .ssh_name = "127.0.1.1"};
  HostAddresses known;
  known.by_ssh = "127.0.0.1";
  known.its_own = {"10.77.0.1"};
  EXPECT_EQ(address_for_others(host, known), "");
  known.by_ssh = "10.77.1.1";
  EXPECT_EQ(address_for_others(host, known), "10.77.1.1");
}

TEST(HostAddress, OfSshIsTheThirdWordOfItsVariable) {
  setenv("SSH_CONNECTION", "10.1.1.9 50022 10.1.1.7 22", 1);
  EXPECT_EQ(own_ssh_address(), "10.1.1.7");
  setenv("SSH_CONNECTION", "10.1.1.9 50022", 1);
  EXPECT_EQ(own_ssh_address(), "");
  unsetenv("SSH_CONNECTION");
  EXPECT_EQ(own_ssh_address(), "");
}

TEST(HostAddress, OfThisMachineAreLoopbackAndThoseOfItsInterfaces) {
  EXPECT_TRUE(is_own_address("127.0.0.1"));
  EXPECT_TRUE(is_own_address("::1"));
  for (const std::string& address : own_addresses()) EXPECT_TRUE(is_own_address(address));
  EXPECT_FALSE(is_own_address("192.0.2.1"));  // of documentation, RFC 5737
  EXPECT_EQ(addresses_of("127.0.0.1"), std::vector<std::string>{"127.0.0.1"});
  EXPECT_TRUE(addresses_elsewhere("127.0.0.1").empty());
}

}  // namespace
}  // namespace lockstep
