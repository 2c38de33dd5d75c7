// How many ranks `lockstep launch -n auto` starts on a machine, and why (docs/launch.md#-n-auto).
// The choice is a function of what the machine says of itself (launch/probe/probe.h), here or
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
  std::string why_no_gpu = "";  // why not even one of those can be used

  // Of the answer to "facts". MachineError: from a lockstep that did not tell all of it yet.
  static HostResources of(const nlohmann::ordered_json& facts);
};

struct LayoutWishes {
  bool gpus = true;  // false: run.device = "cpu"
  int threads = 0;   // of each rank, as OMP_NUM_THREADS says; 0: nobody said
};

struct RankLayout {
  int ranks = 1, threads = 1;
  bool pin = false;    // each rank to its NUMA node
  std::string reason;  // "2 NUMA nodes of 4 cores"

  std::string text() const;  // "2 ranks x 4 threads: 2 NUMA nodes of 4 cores"
};

// A rank a GPU; without GPUs a rank a NUMA node where the nodes have equally many cores and a limit
// leaves more than one of them to use; else one rank. Its threads share the cores, or what a limit
// lets be busy of them.
RankLayout choose_layout(const HostResources& host, const LayoutWishes& wishes);

// This machine's, as `lockstep probe` tells. MachineError: it cannot be asked.
RankLayout layout_of_this_machine(const LayoutWishes& wishes);

// Asks the hosts that nobody gave a number of ranks (Host::slots is kAutoSlots) and sets slots and
// pin; others stay as they are. Returns a line for each host asked: "a: 1 rank x 4 threads: ...".
// MachineError when one does not answer; where `least_hosts` (0: all) lets some be away, these get
// the ranks of the first that answers.
std::vector<std::string> settle_slots(HostList& hosts, const RemoteOptions& remote,
                                      const LayoutWishes& wishes, int least_hosts = 0);

}  // namespace lockstep
