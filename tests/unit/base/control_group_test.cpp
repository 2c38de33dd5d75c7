#include "base/control_group.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace lockstep {
namespace {

constexpr int64_t kMegabyte = 1'000'000;

// /proc and /sys of an invented machine of 16 GB, of which 12 are free.
class ControlGroup : public ::testing::Test {
 protected:
  ControlGroup() {
    put("proc/meminfo", "MemTotal: 16000000 kB\nMemFree: 1 kB\nMemAvailable: 12000000 kB\n");
  }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((folder_.path() / path).parent_path());
    write_file(folder_.path() / path, text);
  }
  std::string root() const { return folder_.path().string(); }

  TemporaryFolder folder_;
};

TEST_F(ControlGroup, WithoutAnyThereIsNoLimit) {
  EXPECT_EQ(core_limit(root()).cores, 0);
  EXPECT_EQ(usable_memory(root()).total, 16'000'000LL * 1024);
  EXPECT_EQ(usable_memory(root()).free, 12'000'000LL * 1024);
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(core_limit(root()).cores, 0);
  EXPECT_EQ(usable_memory(root()).total, 16'000'000LL * 1024);
}

TEST_F(ControlGroup, OfVersion2LimitsAtItsNarrowestLevel) {
  put("proc/self/cgroup", "0::/jobs/ranks\n");
  put("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/jobs/ranks/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(core_limit(root()).cores, 1.5);
  EXPECT_EQ(core_limit(root()).group, "/jobs");
}

// The container's own group is the root of what it sees.
TEST_F(ControlGroup, OfAContainerStandsAtTheRoot) {
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(core_limit(root()).cores, 0.5);
}

TEST_F(ControlGroup, OfVersion1LimitsCores) {
  put("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n0::/\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");  // the path is the host's
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(core_limit(root()).cores, 1.5);
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(core_limit(root()).cores, 0);
  put("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "25000\n");
  put("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "50000\n");
  EXPECT_DOUBLE_EQ(core_limit(root()).cores, 0.5);
}

// cpuset and cpuacct have no quota: a controller is found by its whole name.
TEST_F(ControlGroup, OfOtherControllersSaysNothingOfCores) {
  put("proc/self/cgroup", "3:cpuset:/x\n2:cpuacct:/x\n");
  put("sys/fs/cgroup/cpuset/x/cpu.cfs_quota_us", "150000\n");
  put("sys/fs/cgroup/cpuset/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(core_limit(root()).cores, 0);
}

TEST_F(ControlGroup, OfVersion2LimitsMemoryAndCachedFilesAreFree) {
  put("proc/self/cgroup", "0::/jobs\n");
  put("sys/fs/cgroup/jobs/memory.max", "2000000000\n");
  put("sys/fs/cgroup/jobs/memory.current", "900000000\n");
  put("sys/fs/cgroup/jobs/memory.stat",
      "anon 500000000\nfile 400000000\ninactive_file 300000000\nactive_file 100000000\n");
  EXPECT_EQ(usable_memory(root()).total, 2000 * kMegabyte);
  EXPECT_EQ(usable_memory(root()).free, 1500 * kMegabyte);
}

TEST_F(ControlGroup, OfVersion1LimitsMemory) {
  put("proc/self/cgroup", "4:memory:/jobs/x\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "2000000000\n");
  put("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "900000000\n");
  put("sys/fs/cgroup/memory/jobs/memory.stat",
      "inactive_file 1\ntotal_inactive_file 300000000\ntotal_active_file 100000000\n");
  EXPECT_EQ(usable_memory(root()).total, 2000 * kMegabyte);
  EXPECT_EQ(usable_memory(root()).free, 1500 * kMegabyte);
}

TEST_F(ControlGroup, AMachineThatIsFullerThanTheGroupCounts) {
  put("proc/self/cgroup", "0::/jobs\n");
  put("sys/fs/cgroup/jobs/memory.max", "15000000000\n");
  put("sys/fs/cgroup/jobs/memory.current", "1000000\n");
  EXPECT_EQ(usable_memory(root()).total, 15000 * kMegabyte);
  EXPECT_EQ(usable_memory(root()).free, 12'000'000LL * 1024);
}

}  // namespace
}  // namespace lockstep
