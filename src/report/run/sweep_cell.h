// Reads and writes what a sweep records for others to read: its cells (sweep.json) and the state of
// each (cells/NAME/cell.json). docs/report.md#the-folder has the layout.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace lockstep {

struct NetworkCondition {
  double delay_ms = 0;   // one way
  double rate_mbit = 0;  // of each host's line; 0: no limit
  double loss = 0;       // share of packets
};

struct SetUp {
  int hosts = 1, ranks_per_host = 1;
  int ranks() const { return hosts * ranks_per_host; }
  std::string text() const;  // "2x1"
};

// One run that a sweep asks for, and its state.
struct CellRecord {
  std::string name;  // of its folder
  // What was asked for, by key, in the sweep's order: "optimizer.lr" -> "0.1". A value that is
  // multiplied by the ranks is stored as written, with kPerRank appended to its key.
  std::vector<std::pair<std::string, std::string>> values;
  SetUp setup;
  std::optional<NetworkCondition> network;  // of virtual hosts
  int64_t seed = 1;

  // "waiting", "running", "done", "failed", "diverged", "stopped" or "time limit".
  std::string state = "waiting";
  int exit_code = 0;
  std::string error;   // why it failed, in one line
  int attempts = 0;    // number of starts
  double seconds = 0;  // of all attempts

  bool is_over() const { return state == "done" || state == "diverged"; }
};

inline constexpr const char* kPerRank = " per rank";

// The layout of a sweep's folder.
struct SweepFolder {
  fs::path path;
  fs::path index() const { return path / "sweep.json"; }
  fs::path lock() const { return path / ".lock"; }
  fs::path cell(const std::string& name) const { return path / "cells" / name; }
  fs::path record(const std::string& name) const { return cell(name) / "cell.json"; }
  fs::path config(const std::string& name) const { return cell(name) / "config.toml"; }
  fs::path run(const std::string& name) const { return cell(name) / "run"; }
  fs::path output(const std::string& name) const { return cell(name) / "output.txt"; }
};

void write_cell(const SweepFolder& folder, const CellRecord& cell);
std::optional<CellRecord> read_cell(const SweepFolder& folder, const std::string& name);
void write_sweep_index(const SweepFolder& folder, const std::vector<std::string>& cells);
bool is_sweep(const fs::path& folder);
// Returns the cells in the sweep's order. Throws DataError when the folder holds no sweep, or a
// damaged one.
std::vector<CellRecord> read_cells(const SweepFolder& folder);

}  // namespace lockstep
