// Decides how many ranks `lockstep launch -n auto` starts on a machine, and why
// (docs/launch.md#-n-auto), from what the machine reports of itself (launch/probe/probe.h), here or
// through ssh.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

// What the choice depends on.
struct HostResources {
  std::vector<int> node_cores;  // usable cores of each NUMA node that has some
  double core_limit = 0;        // of its control groups, in cores; 0: none
  int gpus = 0;                 // that this program can compute on
  int gpus_seen = 0;            // that the driver's management library shows
  std::string why_no_gpu = "";  // why none of those can be used

  // Reads the answer to "facts". Throws MachineError for the answer of an older lockstep that lacks
  // some of it.
  static HostResources of(const nlohmann::ordered_json& facts);
};

struct LayoutWishes {
  bool gpus = true;  // false: run.device = "cpu"
  int threads = 0;   // of each rank, from OMP_NUM_THREADS; 0: not given
};

struct RankLayout {
  int ranks = 1, threads = 1;
  bool pin = false;    // pins each rank to its NUMA node
  std::string reason;  // "2 NUMA nodes of 4 cores"

  std::string text() const;  // "2 ranks x 4 threads: 2 NUMA nodes of 4 cores"
};

// Returns one rank per GPU; without GPUs, one rank per NUMA node where the nodes have equally many
// cores and a CPU limit allows more cores than one node has; else one rank. The ranks' threads
// share the cores, or as many as a limit allows to be busy.
RankLayout choose_layout(const HostResources& host, const LayoutWishes& wishes);

// Returns the layout for this machine, as `lockstep probe` reports it. Throws MachineError when it
// cannot be asked.
RankLayout layout_of_this_machine(const LayoutWishes& wishes);

// Asks the hosts without a number of ranks (Host::slots is kAutoSlots) and sets their slots and
// pin; other hosts stay as they are. Returns a line for each host asked: "a: 1 rank x 4 threads:
// ...". Throws MachineError when one does not answer; where `least_hosts` (0: all) allows hosts to
// be away, these get the ranks of the first that answers.
std::vector<std::string> settle_slots(HostList& hosts, const RemoteOptions& remote,
                                      const LayoutWishes& wishes, int least_hosts = 0);

}  // namespace lockstep
