#include "base/control_group.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/proc_files.h"
#include "base/text.h"

namespace lockstep {
namespace {

// A control group of this process: the mount point of its tree and its path in that tree.
struct Group {
  int version;
  std::string mount, path;
};

// Reads /proc/self/cgroup. The line "0::/user.slice" belongs to version 2. The line
// "4:cpu,cpuacct:/jobs" belongs to a tree of version 1, which is mounted under the names of its
// controllers or, by a symbolic link, under one of them. A container may see the path that its
// group has on the host, which does not exist inside it. Its limits are then at the root of the
// mounted tree, which is read as well.
std::vector<Group> groups_of(const std::string& controller, const std::string& root) {
  std::vector<Group> out;
  for (const std::string& line : split(small_file(root + "/proc/self/cgroup"), '\n')) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) out.push_back({2, "/sys/fs/cgroup", path});
    const std::vector<std::string> names = split(controllers, ',');
    if (std::find(names.begin(), names.end(), controller) == names.end()) continue;
    out.push_back({1, "/sys/fs/cgroup/" + controller, path});
    if (names.size() > 1) out.push_back({1, "/sys/fs/cgroup/" + controllers, path});
  }
  return out;
}

// Visits each group of this process and its parents up to the root of the tree.
void each_level(const std::string& controller, const std::string& root,
                const std::function<void(const Group& level, const std::string& folder)>& visit) {
  for (Group group : groups_of(controller, root)) {
    for (;; group.path.resize(std::min(group.path.rfind('/'), group.path.size() - 1))) {
      visit(group, root + group.mount + group.path);
      if (group.path.empty()) break;
    }
  }
}

double cores_of(int version, const std::string& folder) {
  if (version == 2) return parse_core_limit(small_file(folder + "/cpu.max"));
  const std::string quota(trim(small_file(folder + "/cpu.cfs_quota_us")));
  if (quota.empty() || quota.front() == '-') return 0;  // -1: no limit
  return parse_core_limit(quota + " " + small_file(folder + "/cpu.cfs_period_us"));
}

// The limit of a group and the memory it uses, in bytes, without its page cache of files. Version 1
// writes a value near 2^63 where there is no limit.
struct GroupMemory {
  int64_t limit = 0, used = 0;
};
GroupMemory memory_of(int version, const std::string& folder) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  const bool v2 = version == 2;
  const std::string limit = small_file(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  GroupMemory out{.limit = static_cast<int64_t>(parse_number(limit))};
  if (out.limit <= 0 || out.limit >= kNoLimit) return {};
  const std::string used = small_file(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  out.used = static_cast<int64_t>(parse_number(used));
  const std::string stat = small_file(folder + "/memory.stat");
  for (const char* cached : {"inactive_file ", "active_file "}) {
    out.used -= parse_entry(stat, v2 ? cached : std::string("total_") + cached);
  }
  out.used = std::clamp<int64_t>(out.used, 0, out.limit);
  return out;
}

}  // namespace

CoreLimit core_limit(const std::string& root) {
  CoreLimit out;
  each_level("cpu", root, [&](const Group& level, const std::string& folder) {
    const double cores = cores_of(level.version, folder);
    if (cores <= 0 || (out.cores > 0 && cores >= out.cores)) return;
    out = {cores, level.path};
  });
  return out;
}

UsableMemory usable_memory(const std::string& root) {
  const std::string machine = small_file(root + "/proc/meminfo");
  UsableMemory out{.total = parse_kilobytes(machine, "MemTotal:"),
                   .free = parse_kilobytes(machine, "MemAvailable:")};
  each_level("memory", root, [&](const Group& level, const std::string& folder) {
    const GroupMemory group = memory_of(level.version, folder);
    if (group.limit == 0) return;
    out.total = std::min(out.total, group.limit);
    out.free = std::min(out.free, group.limit - group.used);
  });
  return out;
}

}  // namespace lockstep
