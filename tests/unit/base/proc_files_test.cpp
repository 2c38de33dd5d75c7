#include "base/proc_files.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ProcFiles, TicksOfCoresStandAtTheirNumbers) {
  const CpuTicks ticks = parse_cpu_ticks(
      "cpu  300 0 100 500 100 0 0 0 50 0\n"
      "cpu0 200 0 50 240 10 0 0 0 50 0\n"
      "cpu2 100 0 50 260 90 0 0 0 0 0\n"  // core 1 is offline
      "intr 12345 6 7\ncpu9 1 1 1 1 1 1 1 1\n");
  ASSERT_EQ(ticks.total.size(), 4u);
  EXPECT_EQ(ticks.total, (std::vector<uint64_t>{1000, 500, 0, 500}));
  EXPECT_EQ(ticks.busy, (std::vector<uint64_t>{400, 250, 0, 150}));
  EXPECT_TRUE(parse_cpu_ticks("").total.empty());
}

TEST(ProcFiles, AnInterfaceIsFoundByItsWholeName) {
  const std::string text =
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs "
      "drop fifo colls carrier compressed\n"
      "  eth0:1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n"
      " eth01: 5 5 5 5 0 0 0 0 5 5 5 5 0 0 0 0\n";
  const InterfaceCounters net = parse_interface(text, "eth0");
  EXPECT_EQ(net.in_bytes, 1000u);
  EXPECT_EQ(net.in_packets, 10u);
  EXPECT_EQ(net.in_errors, 1u);
  EXPECT_EQ(net.in_drops, 2u);
  EXPECT_EQ(net.out_bytes, 2000u);
  EXPECT_EQ(net.out_packets, 20u);
  EXPECT_EQ(net.out_errors, 3u);
  EXPECT_EQ(net.out_drops, 4u);
  EXPECT_EQ(parse_interface(text, "eth").in_bytes, 0u);
  EXPECT_EQ(parse_interface(text, "").in_bytes, 0u);
}

TEST(ProcFiles, TcpCountersAreFoundByTheirNames) {
  const TcpCounters tcp = parse_tcp(
      "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
      "Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs InErrs\n"
      "Tcp: 1 -1 700 800 9 0\nUdp: InDatagrams\nUdp: 3\n");
  EXPECT_EQ(tcp.sent, 800u);
  EXPECT_EQ(tcp.retransmitted, 9u);
  EXPECT_EQ(parse_tcp("Tcp: OutSegs\n").sent, 0u);
}

TEST(ProcFiles, OnlyDisksThatCountAreAddedUp) {
  const std::string text =
      "   8       0 sda 10 0 100 5 20 0 200 9 0 5 5\n"
      "   8       1 sda1 10 0 100 5 20 0 200 9 0 5 5\n"
      "   8      16 sdb 1 0 8 0 1 0 16 0 0 0 0\n"
      "   7       0 loop0 9 0 900 0 0 0 0 0 0 0 0\n";
  const DiskCounters disks =
      parse_disks(text, [](std::string_view name) { return name == "sda" || name == "sdb"; });
  EXPECT_EQ(disks.read_bytes, 108u * 512);
  EXPECT_EQ(disks.written_bytes, 216u * 512);
}

TEST(ProcFiles, ProcessMemoryAndLimits) {
  const DiskCounters io = parse_process_io("rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n");
  EXPECT_EQ(io.read_bytes, 4096u);
  EXPECT_EQ(io.written_bytes, 8192u);
  EXPECT_EQ(parse_kilobytes("MemTotal:       16 kB\nMemAvailable: 8 kB\n", "MemAvailable:"), 8192);
  EXPECT_EQ(parse_kilobytes("MemTotal:       16 kB\n", "SwapFree:"), 0);
  EXPECT_DOUBLE_EQ(parse_core_limit("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_core_limit("max 100000\n"), 0);
  EXPECT_EQ(parse_core_limit(""), 0);
  EXPECT_EQ(parse_number(" 42\n"), 42u);
  EXPECT_EQ(small_file("/no/such/file"), "");
}

}  // namespace
}  // namespace lockstep
