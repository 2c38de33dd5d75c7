// Expands a sweep's file into its cells: every combination, with a name and the configuration to
// run.
#pragma once

#include <string>
#include <vector>

#include "report/run/sweep_cell.h"
#include "sweep/sweep_config.h"

namespace lockstep {

inline constexpr std::size_t kMostCells = 10000;

struct SweepCell {
  CellRecord record;
  std::string config;              // the effective configuration of its run, as TOML
  std::vector<std::string> words;  // the same, as key=value words over the base
};

// Returns the cells in the order in which they run: values (the first grid key outermost), set-ups,
// networks, and seeds innermost. Set-ups of one host have no network, so they appear once whatever
// [network] says. Checks the configuration of every cell against the keys and rules of its task:
// throws ConfigError that names the sweep's file and line of each error in it.
std::vector<SweepCell> expand_sweep(const SweepConfig& config);

// Returns the network of a cell's virtual hosts, as `lockstep netlab` reads it.
std::string lab_toml(const SweepConfig& config, const CellRecord& cell);
// Returns the name of a virtual host: node1, node2, ...
std::string virtual_host(int index);
// Returns a hosts file of the cell's first hosts, each with the set-up's ranks.
std::string hosts_file(const SweepConfig& config, const CellRecord& cell);

}  // namespace lockstep
