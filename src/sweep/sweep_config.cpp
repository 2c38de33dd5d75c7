#include "sweep/sweep_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "config/recipe.h"

namespace lockstep {

namespace {

constexpr int kMostRanksPerHost = 256;

bool read_count(std::string_view text, int& out) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size() && out >= 1;
}

void read_setups(ConfigSource& source, SweepConfig& out) {
  const char* key = "sweep.setups";
  if (out.sweep.setups.empty()) {
    source.add_error(key, "expected set-ups as \"2x4\": hosts x ranks on each");
  }
  for (const std::string& text : out.sweep.setups) {
    const SetUp setup = detail::parse_setup(text);
    if (setup.hosts == 0) {
      source.add_error(key, fmt::format("\"{}\": expected hosts x ranks on each, as \"2x4\"; at "
                                        "most {} ranks on a host",
                                        text, kMostRanksPerHost));
      continue;
    }
    auto is_same = [&](const SetUp& other) { return other.text() == setup.text(); };
    if (std::any_of(out.setups.begin(), out.setups.end(), is_same)) {
      source.add_error(key, fmt::format("\"{}\" stands there twice", text));
    }
    out.setups.push_back(setup);
  }
}

void read_seeds(ConfigSource& source, SweepConfig& out) {
  if (!out.sweep.seeds.empty() && source.has("sweep.repeats")) {
    source.add_error("sweep.seeds",
                     "and sweep.repeats: one of them; repeats takes seeds 1, 2, ...");
  }
  for (double seed : out.sweep.seeds) {
    const auto whole = static_cast<int64_t>(seed);
    if (static_cast<double>(whole) != seed) {
      source.add_error("sweep.seeds", fmt::format("{}: expected whole numbers", seed));
    }
    if (std::find(out.seeds.begin(), out.seeds.end(), whole) != out.seeds.end()) {
      source.add_error("sweep.seeds", fmt::format("{} stands there twice", seed));
    }
    out.seeds.push_back(whole);
  }
  for (int64_t i = 1; out.sweep.seeds.empty() && i <= out.sweep.repeats; ++i)
    out.seeds.push_back(i);
}

void read_network(ConfigSource& source, SweepConfig& out) {
  const SweepNetwork& n = out.network;
  for (const char* key : {"delay_ms", "rate_mbit", "loss", "cpu", "sysctl"}) {
    out.asks_for_network |= source.has(std::string("network.") + key);
  }
  auto check = [&](const char* key, const std::vector<double>& values) {
    if (values.empty()) source.add_error(key, "expected a value at least");
  };
  check("network.delay_ms", n.delay_ms);
  check("network.rate_mbit", n.rate_mbit);
  check("network.loss", n.loss);
  for (double delay : n.delay_ms) {
    for (double rate : n.rate_mbit) {
      for (double loss : n.loss) out.conditions.push_back({delay, rate, loss});
    }
  }
}

bool is_below_here(const fs::path& path) {
  return path.is_relative() && *path.lexically_normal().begin() != "..";
}

void read_host_names(ConfigSource& source, SweepConfig& out) {
  const SweepHosts& h = out.host_names;
  const char* key = !h.list.empty()   ? "hosts.list"
                    : !h.file.empty() ? "hosts.file"
                                      : "hosts.instances";
  try {
    out.hosts = read_hosts({.hosts = h.list, .hosts_file = h.file, .instances = h.instances});
  } catch (const ConfigError& error) {
    source.add_error(key, error.what());
  }
  if (out.hosts.hosts.empty()) {
    if (!h.options.empty()) source.add_error("hosts.options", "but no hosts are given");
    if (!h.ssh.empty()) source.add_error("hosts.ssh", "but no hosts are given");
    if (h.push) source.add_error("hosts.push", "but no hosts are given");
    return;
  }
  if (h.push && !is_below_here(out.sweep.folder)) {
    source.add_error("sweep.folder",
                     "expected a path below the present folder: hosts.push names it on the hosts");
  }
  if (out.asks_for_network) {
    source.add_error(key,
                     "and [network]: the network between real hosts is as it is; without [hosts] "
                     "set-ups of several hosts run on virtual ones, with the network one asks for");
  }
  for (const SetUp& setup : out.setups) {
    if (setup.hosts <= static_cast<int>(out.hosts.hosts.size())) continue;
    source.add_error("sweep.setups",
                     fmt::format("\"{}\" needs {} hosts, {} names {}", setup.text(), setup.hosts,
                                 out.hosts.source, out.hosts.hosts.size()));
  }
}

// Checks the cores that set-ups need on this machine, all virtual hosts together.
void check_cores(ConfigSource& source, SweepConfig& out) {
  const auto there = static_cast<int64_t>(usable_threads());
  SweepSection& s = out.sweep;
  if (s.cores > there) {
    source.add_error("sweep.cores", fmt::format("{}: there are {}", s.cores, there));
  }
  if (s.cores == 0) s.cores = there;
  if (!out.hosts.hosts.empty()) {
    if (s.at_once > 1) {
      source.add_error("sweep.at_once", "above 1: cells on real hosts would share them");
    }
    return;
  }
  if (s.at_once > 1 && s.threads == 0) {
    source.add_error("sweep.at_once",
                     "above 1 needs sweep.threads, which says how many cores a rank takes");
  }
  if (s.oversubscribe) return;
  for (const SetUp& setup : out.setups) {
    const int64_t needed = setup.ranks() * std::max<int64_t>(1, s.threads);
    if (needed <= s.cores) continue;
    source.add_error(
        "sweep.setups",
        fmt::format("\"{}\" needs {} cores ({} ranks of {} thread{}), the sweep has "
                    "{}; sweep.oversubscribe=true runs it all the same",
                    setup.text(), needed, setup.ranks(), std::max<int64_t>(1, s.threads),
                    s.threads > 1 ? "s" : "", s.cores));
  }
}

// Rejects keys that every cell gets from the sweep itself.
void refuse_own_keys(ConfigSource& source, const std::string& section, const std::string& key) {
  const std::string full = section + "." + key;
  if (key == "run.folder")
    source.add_error(full, "each cell has a folder of its own below sweep.folder");
  if (key == "run.seed") source.add_error(full, "sweep.seeds or sweep.repeats say it");
}

// Reads [set] and [[cell]]: one value per key, which may be a list.
std::vector<SweptKey> read_values(ConfigSource& source, const std::string& section) {
  std::vector<SweptKey> out;
  for (const WrittenEntry& entry : source.take_below(section)) {
    refuse_own_keys(source, section, entry.key);
    out.push_back({entry.key, {entry.value}, entry.where});
  }
  return out;
}

std::vector<SweptKey> read_grid(ConfigSource& source) {
  std::vector<SweptKey> out;
  for (const WrittenEntry& entry : source.take_below("grid")) {
    refuse_own_keys(source, "grid", entry.key);
    if (!entry.is_list || entry.items.empty()) {
      source.add_error("grid." + entry.key,
                       fmt::format("expected a list of values, got {}; one value for all cells "
                                   "belongs to [set]",
                                   entry.is_list ? "an empty one" : entry.value.toml));
    }
    out.push_back({entry.key, entry.items, entry.where});
  }
  return out;
}

void check_twice(ConfigSource& source, const SweepConfig& out) {
  auto keys_of = [](const std::vector<SweptKey>& keys) {
    std::vector<std::string> names;
    for (const SweptKey& key : keys) names.push_back(key.key);
    return names;
  };
  const std::vector<std::string> set = keys_of(out.set), grid = keys_of(out.grid);
  auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& key : grid) {
    if (has(set, key)) source.add_error("grid." + key, "is in [set] too");
  }
  for (std::size_t i = 0; i < out.lists.size(); ++i) {
    for (const SweptKey& key : out.lists[i]) {
      if (!has(grid, key.key)) continue;
      source.add_error(fmt::format("cell[{}].{}", i, key.key), "is in [grid] too");
    }
  }
}

// Finds a path relative to here or to the sweep's own folder, or a recipe: "images/resnet18-tiny".
fs::path find_base(ConfigSource& source, const SweepConfig& config) {
  const std::string& name = config.sweep.base;
  if (name.empty()) {
    source.add_error("sweep.base",
                     "expected a configuration, as \"configs/images/cifar10-vit.toml\"");
    return {};
  }
  const fs::path beside = config.file.parent_path() / name;
  if (!fs::is_regular_file(name) && fs::is_regular_file(beside)) return beside.lexically_normal();
  if (std::optional<fs::path> path = find_recipe(name)) return path->lexically_normal();
  source.add_error("sweep.base", fmt::format("no file {}, nor a shipped configuration of that name "
                                             "(as images/resnet18-tiny)",
                                             name));
  return {};
}

}  // namespace

SetUp detail::parse_setup(const std::string& text) {
  SetUp out{0, 0};
  const std::size_t x = text.find('x');
  const bool good = x != std::string::npos &&
                    read_count(std::string_view(text).substr(0, x), out.hosts) &&
                    read_count(std::string_view(text).substr(x + 1), out.ranks_per_host) &&
                    out.hosts <= kMostHosts && out.ranks_per_host <= kMostRanksPerHost;
  return good ? out : SetUp{0, 0};
}

void SweepSection::describe(Fields& f) {
  f("base", &base, Any{},
    "configuration of all cells: a path, or a shipped one by its name, as images/resnet18-tiny");
  f("folder", &folder, Any{}, "where cells and results lie");
  f("setups", &setups, Any{}, "hosts x ranks on each: \"1x1\", \"1x4\", \"2x2\"");
  f("repeats", &repeats, AtLeast{1}, "runs of each cell, with seeds 1, 2, ...");
  f("seeds", &seeds, AtLeast{0}, "the seeds themselves, in place of repeats");
  f("per_rank", &per_rank, Any{},
    "keys whose values are multiplied by the set-up's ranks, as batch.images");
  f("at_once", &at_once, AtLeast{1}, "cells side by side, each on cores of its own");
  f("cores", &cores, AtLeast{0}, "of this machine for all cells together; 0: all");
  f("threads", &threads, AtLeast{0},
    "of each rank, whatever the set-up; 0: as launch does, cores over ranks");
  f("oversubscribe", &oversubscribe, Any{}, "set-ups may have more ranks than there are cores");
  f("cell_minutes", &cell_minutes, AtLeast{0},
    "time limit of a cell: it saves a checkpoint, stops and counts as failed; 0: none");
}

void SweepNetwork::describe(Fields& f) {
  f("delay_ms", &delay_ms, Between{0, 60001}, "between any two virtual hosts, one way");
  f("rate_mbit", &rate_mbit, Between{0, 1e6}, "of each host's line, each way; 0: no limit");
  f("loss", &loss, Between{0, 1}, "share of packets");
  f("cpu", &cpu, Between{0, 1e4}, "cores that a virtual host may use; 0: all of the cell's");
  f("sysctl", &sysctl, Any{}, "kernel settings of each, as net.ipv4.tcp_rmem=4096 131072 33554432");
}

void SweepHosts::describe(Fields& f) {
  f("list", &list, Any{}, "real hosts, as launch -H takes them: a,b,user@c");
  f("file", &file, Any{}, "a file of hosts (docs/launch.md)");
  f("instances", &instances, Any{}, "a cloud's list of instances (docs/launch.md)");
  f("ssh", &ssh, Any{}, "how to reach them, as \"--ssh-user\", \"ubuntu\"");
  f("options", &options, Any{}, "further words for launch, as \"--interface\", \"eth0\"");
  f("push", &push, Any{},
    "hosts that share nothing with this machine: what a cell needs goes there, its run comes here");
}

std::string SweepConfig::place(const std::string& key) const {
  for (const auto& [name, where] : places) {
    if (name == key) return where;
  }
  return file.string();
}

std::string SweepConfig::help() {
  HelpWriter help;
  SweepSection sweep;
  help.section("sweep", sweep, "what is run and how");
  SweepNetwork network;
  help.section("network", network, "between virtual hosts; every combination of the lists");
  SweepHosts hosts;
  help.section("hosts", hosts, "real ones, in place of virtual ones");
  return help.text() +
         "\n[set]    KEY = VALUE of the run's configuration, for all cells\n"
         "[grid]   KEY = [VALUES]; every combination is a cell\n"
         "[[cell]] KEY = VALUE that go together; each combined with the grid\n";
}

SweepConfig read_sweep_config(const fs::path& file, const std::vector<std::string>& words) {
  ConfigSource source = ConfigSource::from_file(file);
  for (const std::string& word : words) source.override_with(word);
  SweepConfig out;
  out.file = file;
  out.sweep.folder = "sweeps/" + file.stem().string();
  source.read("sweep", out.sweep);
  source.read("network", out.network);
  source.read("hosts", out.host_names);
  out.set = read_values(source, "set");
  out.grid = read_grid(source);
  for (;;) {
    auto list = read_values(source, fmt::format("cell[{}]", out.lists.size()));
    if (list.empty()) break;
    out.lists.push_back(std::move(list));
  }
  check_twice(source, out);
  read_setups(source, out);
  read_seeds(source, out);
  read_network(source, out);
  read_host_names(source, out);
  check_cores(source, out);
  out.base = find_base(source, out);
  for (const char* key : {"sweep.base", "sweep.folder", "sweep.setups", "sweep.per_rank"}) {
    out.places.emplace_back(key, source.place_of(key));
  }
  source.finish();
  return out;
}

}  // namespace lockstep
