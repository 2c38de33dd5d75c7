#include "base/host_usage.h"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/file.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

HostUsageOptions light(const std::string& interface) {
  return {.interface = interface, .machine = false, .root = "", .nvml = ""};
}

double cpu_seconds() {  // of this process
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(HostUsage, SeesThisProcessComputeAndSleep) {
  HostUsage usage(light(""));
  const auto begin = Clock::now();
  const double cpu_end = cpu_seconds() + 0.3;
  double sum = 0;
  while (cpu_seconds() < cpu_end) sum += std::sqrt(sum + 2);
  HostFigures busy = usage.sample();
  // However loaded the machine is: what of a core it got.
  const double cores = 0.3 / std::chrono::duration<double>(Clock::now() - begin).count();
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  HostFigures idle = usage.sample();
  EXPECT_GT(sum, 0);
  EXPECT_NEAR(busy.process_cores, cores, 0.02 + 0.2 * cores);
  EXPECT_LT(idle.process_cores, busy.process_cores / 2);
  EXPECT_EQ(idle.samples, 2u);
  EXPECT_EQ(usage.machine().samples, 0u) << "not asked for";
}

TEST(HostUsage, KnowsTheMachine) {
  HostUsage usage({.interface = "lo", .machine = true, .root = "", .nvml = ""});
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  HostFigures figures = usage.sample();
  EXPECT_GT(figures.cores, 0);
  EXPECT_GE(figures.cores, figures.usable_cores);
  EXPECT_GE(figures.machine_share, 0);
  EXPECT_LE(figures.machine_share, 1);
  EXPECT_GE(usage.busy_cores().size(), static_cast<std::size_t>(figures.cores));
  EXPECT_GT(figures.resident_bytes, 1 << 20);
  EXPECT_GT(figures.available_bytes, figures.resident_bytes / 100);
  EXPECT_GT(figures.memory_bytes, figures.available_bytes);
  EXPECT_EQ(std::strcmp(figures.interface, "lo"), 0);
  EXPECT_EQ(figures.link_bytes_per_second, 0);  // a loopback has no speed
  EXPECT_EQ(usage.machine().samples, 1u);
  EXPECT_EQ(usage.machine().memory_bytes, figures.memory_bytes);
  EXPECT_GT(free_disk_bytes("/"), 0);
}

TEST(HostUsage, WhatIsNotThereIsZero) {
  HostUsage usage(light("no-such-interface"));
  HostFigures figures = usage.sample();
  EXPECT_EQ(figures.in_bytes_per_second, 0);
  EXPECT_EQ(figures.link_bytes_per_second, 0);
  EXPECT_EQ(free_disk_bytes("/no/such/folder"), -1);
}

// /proc and /sys of an invented machine with two cores, a disk, an interface and a processor that
// tells its energy.
class InventedMachine : public ::testing::Test {
 protected:
  InventedMachine() {
    put("proc/self/status", "Name: x\nVmRSS:     2048 kB\n");
    put("proc/self/cgroup", "0::/jobs/ranks\n");
    put("proc/meminfo", "MemTotal: 16000000 kB\nMemFree: 1 kB\nMemAvailable: 4000000 kB\n");
    put("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/jobs/ranks/cpu.max", "max 100000\n");
    put("sys/class/net/eth0/speed", "10000\n");
    put("sys/block/sda/device/model", "invented\n");
    put("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000000\n");
    put("sys/class/powercap/intel-rapl:0:0/name", "core\n");
    put("sys/class/powercap/intel-rapl:0:0/energy_uj", "1\n");
    put("sys/class/powercap/intel-rapl:1/name", "psys\n");
    put("sys/class/powercap/intel-rapl:1/energy_uj", "1\n");
    begin();
  }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((folder_.path() / path).parent_path());
    write_file(folder_.path() / path, text);
  }

  void begin() {
    put("proc/stat", "cpu  100 0 0 100\ncpu0 50 0 0 50\ncpu1 50 0 0 50\n");
    put("proc/net/dev", "eth0: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0\n");
    put("proc/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 100 1\n");
    put("proc/diskstats",
        "8 0 sda 1 0 100 0 1 0 100 0 0 0 0\n8 1 sda1 1 0 100 0 1 0 100 0 0 0 0\n");
    put("proc/self/io", "read_bytes: 0\nwrite_bytes: 0\n");
    put("sys/class/powercap/intel-rapl:0/energy_uj", "999000000\n");
  }

  // Core 0 was busy all the time, core 1 half of it.
  void go_on() {
    put("proc/stat", "cpu  250 0 0 150\ncpu0 150 0 0 50\ncpu1 100 0 0 100\n");
    put("proc/net/dev", "eth0: 5000 30 1 2 0 0 0 0 9000 50 0 4 0 0 0 0\n");
    put("proc/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 200 6\n");
    put("proc/diskstats",
        "8 0 sda 1 0 300 0 1 0 200 0 0 0 0\n8 1 sda1 1 0 900 0 1 0 900 0 0 0 0\n");
    put("proc/self/io", "read_bytes: 512\nwrite_bytes: 1024\n");
    put("sys/class/powercap/intel-rapl:0/energy_uj", "4000000\n");  // it began anew
  }

  HostUsageOptions options() const {
    return {.interface = "eth0", .machine = true, .root = folder_.path().string(), .nvml = ""};
  }

  TemporaryFolder folder_;
};

TEST_F(InventedMachine, IsSampledAsItsFilesSay) {
  HostUsage usage(options());
  go_on();
  const HostFigures own = usage.sample();
  const MachineFigures& m = usage.machine();
  const double s = own.seconds;
  auto expect_near = [](double value, double expected) {
    EXPECT_NEAR(value, expected, 1e-9 * expected);
  };
  expect_near(m.cpu_share, 0.75);
  EXPECT_EQ(m.core_percent[0], 100);
  EXPECT_EQ(m.core_percent[1], 50);
  EXPECT_EQ(m.core_percent[2], 0);
  EXPECT_EQ(own.resident_bytes, 2048 * 1024);
  EXPECT_EQ(m.memory_bytes, 16'000'000LL * 1024);
  EXPECT_EQ(m.available_bytes, 4'000'000LL * 1024);
  EXPECT_DOUBLE_EQ(own.core_limit, 1.5) << "of the group above";
  EXPECT_DOUBLE_EQ(m.link_bytes_per_second, 1.25e9);
  expect_near(m.in_bytes_per_second * s, 4000);
  expect_near(m.out_bytes_per_second * s, 8000);
  expect_near(m.in_packets_per_second * s, 20);
  expect_near(m.out_packets_per_second * s, 40);
  expect_near(m.drops_per_second * s, 6);
  expect_near(m.errors_per_second * s, 1);
  expect_near(m.segments_per_second * s, 100);
  expect_near(m.retransmits_per_second * s, 5);
  expect_near(m.disk_read_bytes_per_second * s, 200 * 512);
  expect_near(m.disk_written_bytes_per_second * s, 100 * 512);
  expect_near(own.read_bytes_per_second * s, 512);
  expect_near(own.written_bytes_per_second * s, 1024);
  expect_near(m.cpu_joules, 5);  // 1 J to the end of the range, 4 J after it
  expect_near(m.cpu_watts * s, 5);
  EXPECT_EQ(m.gpus, 0);
}

TEST_F(InventedMachine, AnUnreadableEnergyCounterIsNotKnown) {
  fs::remove(folder_.path() / "sys/class/powercap/intel-rapl:0/energy_uj");
  HostUsage usage(options());
  usage.sample();
  EXPECT_LT(usage.machine().cpu_watts, 0);
}

TEST_F(InventedMachine, CountersThatBeganAnewGiveNoRates) {
  go_on();
  HostUsage usage(options());
  begin();
  const HostFigures own = usage.sample();
  EXPECT_EQ(own.in_bytes_per_second, 0);
  EXPECT_EQ(own.machine_share, 0);
  EXPECT_EQ(usage.machine().disk_read_bytes_per_second, 0);
}

TEST_F(InventedMachine, ProcessesOfOneGroupShareItsCores) {
  HostUsage one(options()), other(options());
  put("sys/fs/cgroup/jobs/cpu.max", "max 100000\n");
  HostUsage without(options());
  const uint64_t id = one.sample().cores_id;
  EXPECT_EQ(id, other.sample().cores_id);
  EXPECT_NE(id, without.sample().cores_id);
}

}  // namespace
}  // namespace lockstep
