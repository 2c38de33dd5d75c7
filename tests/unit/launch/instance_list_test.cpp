#include "launch/hosts/instance_list.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

class InstanceList : public ::testing::Test {
 protected:
  HostList read(const std::string& text, int ranks_per_host = 0) {
    write_file(path(), text);
    return read_hosts({.instances = path(), .ranks_per_host = ranks_per_host});
  }
  std::string path() const { return (folder_.path() / "instances.json").string(); }
  TemporaryFolder folder_;
};

constexpr const char* kAws = R"({"Reservations": [
  {"Instances": [
    {"InstanceId": "i-1", "State": {"Code": 16, "Name": "running"}, "Tags":
       [{"Key": "Owner", "Value": "x"}, {"Key": "Name", "Value": "worker-1"}],
     "PublicDnsName": "ec2-1.example.com", "PublicIpAddress": "203.0.113.1",
     "PrivateIpAddress": "172.31.0.1"},
    {"InstanceId": "i-2", "State": {"Name": "stopped"}, "PublicDnsName": "",
     "PrivateIpAddress": "172.31.0.2"}]},
  {"Instances": [
    {"InstanceId": "i-3", "State": {"Name": "running"}, "PublicDnsName": "",
     "PublicIpAddress": "203.0.113.3", "PrivateIpAddress": "172.31.0.3"},
    {"InstanceId": "i-4", "State": {"Name": "running"}, "PublicDnsName": "", "Tags":
       [{"Key": "Name", "Value": "my worker"}], "PrivateIpAddress": "172.31.0.4"}]}]})";

TEST_F(InstanceList, TakesTheRunningOnesOfAws) {
  HostList list = read(kAws);
  ASSERT_EQ(list.hosts.size(), 3u);
  EXPECT_EQ(list.hosts[0].name, "worker-1");
  EXPECT_EQ(list.hosts[0].ssh_name, "ec2-1.example.com");  // the public name for ssh
  EXPECT_EQ(list.hosts[0].address, "172.31.0.1");          // the private address for traffic
  EXPECT_EQ(list.hosts[0].state, "running");
  EXPECT_EQ(list.hosts[1].name, "i-3");
  EXPECT_EQ(list.hosts[1].ssh_name, "203.0.113.3");
  EXPECT_EQ(list.hosts[2].name, "i-4");  // its tag is no plain word
  EXPECT_EQ(list.hosts[2].ssh_name, "172.31.0.4");
  EXPECT_EQ(read(kAws, 2).ranks(), 6);
}

TEST_F(InstanceList, TakesWhatAQueryOfAwsLeavesOver) {
  const std::string one = R"({"InstanceId": "i-1", "State": {"Name": "running"}, "Tags": null,
    "PrivateIpAddress": "172.31.0.1"})";
  EXPECT_EQ(read("[[" + one + "]]").hosts.size(), 1u);
  EXPECT_EQ(read("[" + one + "]").hosts.size(), 1u);
}

TEST_F(InstanceList, UsesIdentifiersWhereATagIsShared) {
  auto instance = [](const char* id, const char* address) {
    return fmt::format(
        R"({{"InstanceId": "{}", "State": {{"Name": "running"}}, "PrivateIpAddress": "{}",
           "Tags": [{{"Key": "Name", "Value": "fleet"}}]}})",
        id, address);
  };
  HostList list = read("[" + instance("i-1", "10.0.0.1") + "," + instance("i-2", "10.0.0.2") + "]");
  EXPECT_EQ(list.hosts[0].name, "i-1");
  EXPECT_EQ(list.hosts[1].name, "i-2");
}

TEST_F(InstanceList, TakesGooglesAndAzuresLists) {
  HostList google = read(R"([{"name": "n0", "id": "1", "status": "RUNNING", "networkInterfaces":
    [{"networkIP": "10.128.0.2", "accessConfigs": [{"natIP": "198.51.100.2"}]}]},
    {"name": "n1", "status": "TERMINATED", "networkInterfaces": [{"networkIP": "10.128.0.3"}]}])");
  ASSERT_EQ(google.hosts.size(), 1u);
  EXPECT_EQ(google.hosts[0].name, "n0");
  EXPECT_EQ(google.hosts[0].ssh_name, "198.51.100.2");
  EXPECT_EQ(google.hosts[0].address, "10.128.0.2");
  HostList azure = read(R"([{"name": "vm0", "powerState": "VM running", "privateIps": "10.0.0.4,",
    "publicIps": "20.0.0.4", "fqdns": ""}, {"name": "vm1", "powerState": "VM deallocated"}])");
  ASSERT_EQ(azure.hosts.size(), 1u);
  EXPECT_EQ(azure.hosts[0].ssh_name, "20.0.0.4");
  EXPECT_EQ(azure.hosts[0].address, "10.0.0.4");
}

TEST_F(InstanceList, SaysWhatIsWrongWithIt) {
  EXPECT_ERROR(read(R"({"Reservations": []})"), ConfigError, "json: no instance is running");
  EXPECT_ERROR(read(R"([{"InstanceId": "i-1", "State": {"Name": "stopped"}},
    {"InstanceId": "i-2", "State": {"Name": "terminated"}}])"),
               ConfigError, "because: 1 stopped, 1 terminated");
  EXPECT_ERROR(read("{\n  \"Reservations\": [,]\n}"), ConfigError, "json:2:20: this is not JSON");
  EXPECT_ERROR(read(""), ConfigError, "json:1:1: this is not JSON");
  EXPECT_ERROR(read(R"([{"cats": 1}])"), ConfigError, "entry 1 is no instance of AWS, Google");
  EXPECT_ERROR(read(R"([{"InstanceId": "i-1", "State": {"Name": "running"}}])"), ConfigError,
               "instance i-1 runs, but has no address");
  EXPECT_ERROR(read_hosts({.instances = "/no/such"}), ConfigError, "--instances /no/such: no such");
}

}  // namespace
}  // namespace lockstep
