// Compares several runs: what differs between them, repeats taken together, figures with their
// spread, scaling against the fewest cores. Runs come from run folders and from sweeps.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/run/run_reader.h"
#include "report/run/spread.h"
#include "report/run/sweep_cell.h"

namespace lockstep {

// A figure of a run that tables and plots show.
struct RunFigure {
  std::string name, unit, help;  // "epoch_seconds", "s"
  std::function<std::optional<double>(const RunFigures&)> of;
};
const std::vector<RunFigure>& run_figures();
const RunFigure& run_figure(const std::string& name);

struct ComparedRun {
  std::string name;               // as the user knows it: the folder or the cell
  std::string state;              // of a cell ("done", "failed", ...), else of the run
  std::string error;              // why it failed
  std::optional<RunFigures> run;  // absent: the run left nothing
  std::optional<SetUp> setup;     // absent: unknown
  std::optional<NetworkCondition> network;
  std::string seed;
  std::map<std::string, std::string> config;  // what may differ, by key
  bool is_done() const { return state == "done" || state == "finished"; }
};

// Runs that differ in their seeds only.
struct ComparedGroup {
  std::vector<std::string> values;  // a value for each of Comparison::keys
  std::optional<SetUp> setup;
  std::optional<NetworkCondition> network;
  std::vector<std::size_t> runs;              // indices
  std::map<std::string, Spread> figures;      // over its done runs, by name of RunFigure
  std::optional<double> speedup, efficiency;  // in items/s against the fewest cores; efficiency is
                                              // the speed-up over how many times the cores
  // Ranks x threads, if equal in all of its runs; the number of ranks where threads are unknown.
  std::optional<int> cores;
};

struct Comparison {
  std::vector<ComparedRun> runs;
  std::vector<std::string> keys;  // configuration keys that differ, sorted
  std::vector<ComparedGroup> groups;
  std::vector<std::string> notes;  // what a reader must know: unfinished runs, missing figures
  std::string metric;              // by which runs are judged; empty: not the same for all, or none
  std::vector<std::string> further;  // the others of evaluation.metrics that all runs have

  bool setups_differ() const;
  bool networks_differ() const;  // among runs on several hosts
  bool repeats() const;          // some group has several runs
};

// Reads runs and sweeps in the order given; each cell of a sweep becomes a run, even one that did
// not start. Throws ConfigError for a folder that is neither, DataError for damaged files.
std::vector<ComparedRun> read_compared(const std::vector<fs::path>& folders);

Comparison compare_runs(std::vector<ComparedRun> runs);

// Shortens "batch.images" to "images" where no other key ends in the same word.
std::string short_key(const std::string& key, const std::vector<std::string>& keys);
// Returns "images 16, lr 0.1": those of the group's values that `shown` keeps.
std::string values_text(const Comparison& comparison, const ComparedGroup& group,
                        const std::function<bool(const std::string&)>& shown);
std::string network_text(const NetworkCondition& network);  // "20 ms, 100 Mbit/s"

}  // namespace lockstep
