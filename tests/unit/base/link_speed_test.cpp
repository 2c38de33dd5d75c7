#include "base/link_speed.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace lockstep {
namespace {

// /sys/class/net of an invented machine.
class LinkSpeed : public ::testing::Test {
 protected:
  fs::path folder(const std::string& name) const { return folder_.path() / "sys/class/net" / name; }
  // Adds an interface that says so many Mbit/s.
  void add(const std::string& name, const std::string& speed) const {
    fs::create_directories(folder(name));
    write_file(folder(name) / "speed", speed + "\n");
    write_file(folder(name) / "ifindex", "2\n");
    write_file(folder(name) / "iflink", "2\n");
  }
  void add_card(const std::string& name, const std::string& speed,
                const std::string& driver) const {
    add(name, speed);
    fs::create_directories(folder(name) / "device");
    fs::create_symlink("../../../bus/drivers/" + driver, folder(name) / "device/driver");
  }
  int64_t speed_of(const std::string& name) const {
    return link_speed_mbit(name, folder_.path().string());
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(LinkSpeed, IsWhatACardSays) {
  add_card("eth0", "25000", "mlx5_core");
  EXPECT_EQ(speed_of("eth0"), 25000);
  add_card("eth1", "-1", "igb");  // no cable
  EXPECT_EQ(speed_of("eth1"), 0);
  EXPECT_EQ(speed_of("none"), 0);
}

TEST_F(LinkSpeed, IsNotKnownFromTheCardsOfVirtualMachines) {
  add_card("ens5", "-1", "ena");
  add_card("ens4", "", "virtio_net");
  add_card("eth0", "50000", "hv_netvsc");  // the port of the host, which many machines share
  add_card("ens192", "10000", "vmxnet3");  // a constant
  for (const char* name : {"ens5", "ens4", "eth0", "ens192"}) EXPECT_EQ(speed_of(name), 0) << name;
}

TEST_F(LinkSpeed, IsNotKnownFromConstantsOfTheKernel) {
  add("eth0", "10000");  // in a container: one end of a pair
  write_file(folder("eth0") / "iflink", "7\n");
  EXPECT_EQ(speed_of("eth0"), 0);
  add("eth1.5", "1000");  // a VLAN has the speed of what it is on
  write_file(folder("eth1.5") / "iflink", "7\n");
  fs::create_directories(folder("eth1.5") / "lower_eth1");
  EXPECT_EQ(speed_of("eth1.5"), 1000);
  add("tun0", "10");
  write_file(folder("tun0") / "tun_flags", "0x1001\n");
  EXPECT_EQ(speed_of("tun0"), 0);
  write_file(folder("tun0") / "speed", "100\n");  // somebody has set it
  EXPECT_EQ(speed_of("tun0"), 100);
}

}  // namespace
}  // namespace lockstep
