// What a sweep's file says (docs/report.md#lockstep-sweep), read and checked as far as that goes
// without its base.
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
  std::vector<std::string> options;
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
  HostList hosts;                            // real ones; none: this machine and virtual hosts
  std::vector<SetUp> setups;                 // sweep.setups
  std::vector<NetworkCondition> conditions;  // every combination; one at least
  bool asks_for_network = false;             // [network] was given
  std::vector<int64_t> seeds;
  fs::path base;                             // found
  std::vector<SweptKey> set;                 // one value each, for all cells
  std::vector<SweptKey> grid;                // all combinations
  std::vector<std::vector<SweptKey>> lists;  // [[cell]]: each one value a key; none: one without

  // Where [sweep].KEY was given, for messages.
  std::string place(const std::string& key) const;
  std::vector<std::pair<std::string, std::string>> places;

  // What the sections of the file may hold.
  static std::string help();
};

// `words`: key=value over the file's. Throws ConfigError with every mistake at once: file, line,
// key, what was expected.
SweepConfig read_sweep_config(const fs::path& file, const std::vector<std::string>& words);

namespace detail {
// "2x4": throws nothing; no hosts (0) for text that is no set-up.
SetUp parse_setup(const std::string& text);
}  // namespace detail

}  // namespace lockstep
