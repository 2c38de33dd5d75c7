// Several runs side by side: what differs between them, repeats taken together, figures with their
// spread, scaling against the fewest ranks. Runs come from run folders and from sweeps.
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
  std::string name;               // as the user knows it: the folder, or the cell's name
  std::string state;              // "done", "failed", ... of a cell; else of the run
  std::string error;              // why it failed
  std::optional<RunFigures> run;  // absent: it left nothing
  std::optional<SetUp> setup;     // absent: not known
  std::optional<NetworkCondition> network;
  std::string seed;
  std::map<std::string, std::string> config;  // what may differ, by key
  bool is_done() const { return state == "done" || state == "finished"; }
};

// Runs that differ in their seed alone.
struct ComparedGroup {
  std::vector<std::string> values;  // a value for each of Comparison::keys
  std::optional<SetUp> setup;
  std::optional<NetworkCondition> network;
  std::vector<std::size_t> runs;              // indices
  std::map<std::string, Spread> figures;      // over its done runs, by name of RunFigure
  std::optional<double> speedup, efficiency;  // in items/s against the fewest cores; efficiency is
                                              // the speed-up over how many times the cores
  // Ranks x threads, equal in all of its runs; the ranks alone where threads are not known.
  std::optional<int> cores;
};

struct Comparison {
  std::vector<ComparedRun> runs;
  std::vector<std::string> keys;  // configuration keys that differ, sorted
  std::vector<ComparedGroup> groups;
  std::vector<std::string> notes;  // what a reader must know: unfinished runs, missing figures
  std::string metric;              // what runs are judged by; empty: not the same for all, or none

  bool setups_differ() const;
  bool networks_differ() const;  // those of several hosts, that is
  bool repeats() const;          // some group has several runs
};

// Reads runs and sweeps, in the order given; the cells of a sweep become a run each, those that did
// not begin included. Throws ConfigError for a folder that is neither, DataError for damaged files.
std::vector<ComparedRun> read_compared(const std::vector<fs::path>& folders);

Comparison compare_runs(std::vector<ComparedRun> runs);

// "batch.images" -> "images" where no other key ends alike.
std::string short_key(const std::string& key, const std::vector<std::string>& keys);
// "images 16, lr 0.1": those of the group's values that `shown` keeps.
std::string values_text(const Comparison& comparison, const ComparedGroup& group,
                        const std::function<bool(const std::string&)>& shown);
std::string network_text(const NetworkCondition& network);  // "20 ms, 100 Mbit/s"

}  // namespace lockstep
