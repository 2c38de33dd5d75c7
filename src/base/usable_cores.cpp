#include "base/usable_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/control_group.h"
#include "base/proc_files.h"

namespace lockstep {
namespace {

// Returns the numbers of the NUMA nodes: folders node0, node1, ... A node may have memory but no
// cores.
std::vector<int> node_numbers(const std::string& folder) {
  std::vector<int> out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= 4 || !name.starts_with("node")) continue;
    if (name.find_first_not_of("0123456789", 4) != std::string::npos) continue;
    out.push_back(static_cast<int>(parse_number(name.substr(4))));
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Returns part `index` of `parts` equal parts of a list. The remainder belongs to no part.
std::vector<int> part_of(const std::vector<int>& list, std::size_t parts, std::size_t index) {
  const std::size_t share = list.size() / parts;
  const auto begin = list.begin() + static_cast<std::ptrdiff_t>(index * share);
  return {begin, begin + static_cast<std::ptrdiff_t>(share)};
}

}  // namespace

std::vector<int> usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::vector<int> out;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) {
    for (long i = 0; i < ::sysconf(_SC_NPROCESSORS_ONLN); ++i) out.push_back(static_cast<int>(i));
    return out;
  }
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &cores)) out.push_back(i);
  }
  return out;
}

int CoreFacts::cores() const {
  std::size_t sum = 0;
  for (const std::vector<int>& node : nodes) sum += node.size();
  return static_cast<int>(sum);
}

int CoreFacts::threads() const {
  const int all = std::max(1, cores());
  if (limit <= 0 || limit >= all) return all;
  return std::max(1, static_cast<int>(std::lround(limit)));
}

CoreFacts core_facts(const std::vector<int>& cores, const std::string& root) {
  CoreFacts out{.nodes = {}, .limit = core_limit(root).cores};
  const std::string folder = root + "/sys/devices/system/node";
  for (int number : node_numbers(folder)) {
    std::vector<int> node;
    const std::string file = folder + "/node" + std::to_string(number) + "/cpulist";
    for (int core : parse_core_list(small_file(file))) {
      if (std::find(cores.begin(), cores.end(), core) != cores.end()) node.push_back(core);
    }
    if (!node.empty()) out.nodes.push_back(std::move(node));
  }
  if (out.cores() != static_cast<int>(cores.size())) out.nodes = {cores};
  return out;
}

int usable_threads() { return core_facts().threads(); }

std::vector<int> cores_of_rank(const CoreFacts& facts, int ranks, int index) {
  const auto all = static_cast<std::size_t>(ranks), i = static_cast<std::size_t>(index);
  const std::size_t nodes = facts.nodes.size();
  const std::size_t in_node = all / nodes;
  const bool even =
      all % nodes == 0 && std::all_of(facts.nodes.begin(), facts.nodes.end(),
                                      [&](const auto& node) { return node.size() >= in_node; });
  if (even) return part_of(facts.nodes[i / in_node], in_node, i % in_node);
  std::vector<int> list;
  for (const std::vector<int>& node : facts.nodes)
    list.insert(list.end(), node.begin(), node.end());
  return part_of(list, all, i);
}

}  // namespace lockstep
