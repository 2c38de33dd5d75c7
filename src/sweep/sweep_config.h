// Reads a sweep's file (docs/report.md#lockstep-sweep), and checks it as far as possible without
// its base.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "config/fields.h"
#include "config/source.h"
#include "launch/hosts/host_list.h"
#include "report/run/sweep_cell.h"

namespace lockstep {

struct SweepSection {
  std::string base, folder;
  std::vector<std::string> setups = {"1x1"};
  int64_t repeats = 1;
  std::vector<double> seeds;
  std::vector<std::string> per_rank;
  int64_t at_once = 1, cores = 0, threads = 0;
  bool oversubscribe = false;
  double cell_minutes = 0;
  void describe(Fields& f);
};

struct SweepNetwork {
  std::vector<double> delay_ms = {0}, rate_mbit = {0}, loss = {0};
  double cpu = 0;
  std::vector<std::string> sysctl;
  void describe(Fields& f);
};

struct SweepHosts {
  std::string list, file, instances;
  std::vector<std::string> options, ssh;
  bool push = false;  // they share nothing with this machine
  void describe(Fields& f);
};

// One key of the run's configuration and the values that it takes.
struct SweptKey {
  std::string key;
  std::vector<WrittenValue> values;
  std::string where;  // "batch-size.toml:12:1"
};

struct SweepConfig {
  fs::path file;
  SweepSection sweep;
  SweepNetwork network;
  SweepHosts host_names;
  HostList hosts;                            // real ones; empty: this machine and virtual hosts
  std::vector<SetUp> setups;                 // sweep.setups
  std::vector<NetworkCondition> conditions;  // every combination; at least one
  bool asks_for_network = false;             // [network] was given
  std::vector<int64_t> seeds;
  fs::path base;                             // found
  std::vector<SweptKey> set;                 // one value each, for all cells
  std::vector<SweptKey> grid;                // all combinations
  std::vector<std::vector<SweptKey>> lists;  // [[cell]]: one value per key; empty: only one cell

  // Returns where [sweep].KEY was given, for messages.
  std::string place(const std::string& key) const;
  std::vector<std::pair<std::string, std::string>> places;

  // Describes what the sections of the file may hold.
  static std::string help();
};

// `words` (key=value) override the file's. Throws ConfigError with all mistakes at once: file,
// line, key, what was expected.
SweepConfig read_sweep_config(const fs::path& file, const std::vector<std::string>& words);

namespace detail {
// Parses "2x4". Does not throw: text that is no set-up gives 0 hosts.
SetUp parse_setup(const std::string& text);
}  // namespace detail

}  // namespace lockstep
