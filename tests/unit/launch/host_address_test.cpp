#include "launch/host_address.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(HostAddress, IsTheOneGivenElseTheNamesWhereItIsTheHostsElseThatOfSsh) {
  Host host{.name = "10.77.0.1", .ssh_name = "me@10.77.0.1"};
  AgentHello hello;
  EXPECT_EQ(address_for_others(host, hello), "10.77.0.1");  // nothing else is known
  hello.ssh_address = "10.77.1.1";
  EXPECT_EQ(address_for_others(host, hello), "10.77.1.1");  // the name's may be a gateway's
  hello.addresses = {"10.77.1.1", "10.77.0.1"};
  EXPECT_EQ(address_for_others(host, hello), "10.77.0.1");
  host.address = "192.0.2.7";
  EXPECT_EQ(address_for_others(host, hello), "192.0.2.7");
}

TEST(HostAddress, IsNeverLoopback) {
  const Host host{.name = "127.0.1.1", .ssh_name = "127.0.1.1"};
  AgentHello hello;
  hello.ssh_address = "127.0.0.1";
  hello.addresses = {"10.77.0.1"};
  EXPECT_EQ(address_for_others(host, hello), "");
  hello.ssh_address = "10.77.1.1";
  EXPECT_EQ(address_for_others(host, hello), "10.77.1.1");
}

}  // namespace
}  // namespace lockstep
