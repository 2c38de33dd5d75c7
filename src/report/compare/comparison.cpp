#include "report/compare/comparison.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

using Value = std::optional<double>;

// A run's folder, its seed and its plan are not what it is.
bool is_of_interest(const std::string& key) {
  static const std::set<std::string> others = {"run.folder", "run.seed", "run.plan"};
  return !others.contains(key);
}

ComparedRun from_folder(const fs::path& folder) {
  ComparedRun out;
  out.run = read_run(folder);
  out.name = folder.lexically_normal().string();
  out.state = out.run->state;
  out.config = out.run->config;
  out.seed = out.config["run.seed"];

  if (out.run->ranks && out.run->hosts && *out.run->ranks % *out.run->hosts == 0) {
    out.setup = SetUp{*out.run->hosts, *out.run->ranks / *out.run->hosts};
  }
  return out;
}

ComparedRun from_cell(const SweepFolder& sweep, const CellRecord& cell) {
  ComparedRun out{.name = cell.name,
                  .state = cell.state,
                  .error = cell.error,
                  .run = {},
                  .setup = cell.setup,
                  .network = cell.network,
                  .seed = std::to_string(cell.seed),
                  .config = {}};
  if (fs::exists(sweep.run(cell.name) / "config.toml")) {
    out.run = read_run(sweep.run(cell.name));
    out.config = out.run->config;
  }
  for (const auto& [key, value] : cell.values) {
    if (key.ends_with(kPerRank)) out.config.erase(key.substr(0, key.size() - strlen(kPerRank)));
    out.config[key] = value;
  }
  return out;
}

// Returns the keys whose values differ among the runs that have a configuration; a sweep's own
// values come first, in its order.
std::vector<std::string> differing_keys(const std::vector<ComparedRun>& runs) {
  std::set<std::string> all;
  for (const ComparedRun& run : runs) {
    for (const auto& [key, value] : run.config) all.insert(key);
  }
  std::vector<std::string> out;
  for (const std::string& key : all) {
    if (!is_of_interest(key)) continue;
    std::set<std::string> values;
    for (const ComparedRun& run : runs) {
      // A cell that did not start knows only what the sweep changes.
      if (!run.run && !run.config.contains(key)) continue;
      auto found = run.config.find(key);
      values.insert(found == run.config.end() ? "" : found->second);
    }
    if (values.size() > 1) out.push_back(key);
  }
  return out;
}

std::string setup_key(const std::optional<SetUp>& setup) { return setup ? setup->text() : ""; }

std::string network_key(const std::optional<NetworkCondition>& network) {
  if (!network) return "";
  return fmt::format("{} {} {}", network->delay_ms, network->rate_mbit, network->loss);
}

void add_groups(Comparison& out) {
  std::map<std::vector<std::string>, std::size_t> index;
  for (std::size_t i = 0; i < out.runs.size(); ++i) {
    const ComparedRun& run = out.runs[i];
    std::vector<std::string> values;
    for (const std::string& key : out.keys) {
      auto found = run.config.find(key);
      values.push_back(found == run.config.end() ? "" : found->second);
    }
    std::vector<std::string> identity = values;
    identity.push_back(setup_key(run.setup));
    identity.push_back(network_key(run.network));
    auto [place, is_new] = index.try_emplace(identity, out.groups.size());
    if (is_new) {
      out.groups.push_back({.values = values,
                            .setup = run.setup,
                            .network = run.network,
                            .runs = {},
                            .figures = {}});
    }
    out.groups[place->second].runs.push_back(i);
  }
  for (ComparedGroup& group : out.groups) {
    for (const RunFigure& figure : run_figures()) {
      std::vector<double> values;
      for (std::size_t i : group.runs) {
        if (!out.runs[i].run || !out.runs[i].is_done()) continue;
        if (Value value = figure.of(*out.runs[i].run)) values.push_back(*value);
      }
      group.figures[figure.name] = spread_of(values);
    }
  }
}

// Counts the cores that each group's runs had; where any of all the runs lacks its threads, counts
// ranks, so that like is compared with like.
void count_cores(Comparison& out) {
  const bool known = std::all_of(out.runs.begin(), out.runs.end(), [](const ComparedRun& run) {
    return !run.is_done() || (run.run && run.run->threads);
  });
  for (ComparedGroup& group : out.groups) {
    std::set<int> cores;
    for (std::size_t i : group.runs) {
      const ComparedRun& run = out.runs[i];
      if (run.is_done() && group.setup) {
        cores.insert(group.setup->ranks() * (known ? *run.run->threads : 1));
      }
    }
    if (cores.size() == 1) group.cores = *cores.begin();
  }
}

// Compares with the group of the same values that has the fewest cores, and of these the fewest
// ranks.
void add_scaling(Comparison& out) {
  const char* speed = "items_per_second";
  for (ComparedGroup& group : out.groups) {
    if (!group.cores || group.figures[speed].count == 0) continue;
    const ComparedGroup* base = nullptr;
    bool others = false;
    for (const ComparedGroup& other : out.groups) {
      if (other.values != group.values || !other.cores || other.figures.at(speed).count == 0) {
        continue;
      }
      others |= other.setup->ranks() != group.setup->ranks();
      const auto size = [](const ComparedGroup& g) {
        return std::pair(*g.cores, g.setup->ranks());
      };
      if (base == nullptr || size(other) < size(*base)) base = &other;
    }
    if (!others || base->figures.at(speed).mean <= 0) continue;
    group.speedup = group.figures[speed].mean / base->figures.at(speed).mean;
    group.efficiency = *group.speedup * *base->cores / *group.cores;
  }
}

// Runs whose steps differ in size take other numbers of updates, of other gradients.
void add_step_sizes(Comparison& out) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_size;
  for (const ComparedRun& run : out.runs) {
    if (!run.run || run.run->step_size.empty()) continue;
    auto same = [&](const auto& entry) { return entry.first == run.run->step_size; };
    auto found = std::find_if(by_size.begin(), by_size.end(), same);
    if (found == by_size.end()) found = by_size.insert(found, {run.run->step_size, {}});
    found->second.push_back(run.name);
  }
  if (by_size.size() < 2) return;
  std::vector<std::string> parts;
  for (const auto& [size, names] : by_size) {
    const bool few = names.size() <= 3;
    parts.push_back(size + " in " +
                    (few ? join(names, ", ") : fmt::format("{} runs", names.size())));
  }
  out.notes.push_back(fmt::format(
      "whole batches differ: {}; so do the updates of an epoch, and what a learning rate means",
      join(parts, "; ")));
}

void add_notes(Comparison& out) {
  add_step_sizes(out);
  for (const ComparedRun& run : out.runs) {
    if (run.is_done() && !run.run) {
      out.notes.push_back(run.name + ": its run folder is not here: on the first host's disk?");
    }
    if (run.is_done()) continue;
    std::string text = fmt::format("{}: {}", run.name, run.state);
    if (run.run && run.run->steps > 0) {
      text += fmt::format(" at step {} of {}", with_commas(run.run->steps),
                          with_commas(run.run->total_steps));
    }
    if (!run.error.empty()) text += ": " + run.error;
    out.notes.push_back(text + "; it is in no mean");
  }
  std::map<std::string, std::vector<std::string>> missing;
  for (const char* name : {"epoch_seconds", "last"}) {
    for (const ComparedRun& run : out.runs) {
      if (run.is_done() && run.run && !run_figure(name).of(*run.run)) {
        missing[name].push_back(run.name);
      }
    }
  }
  auto say = [&](const char* name, const char* what) {
    const auto& runs = missing[name];
    if (runs.empty()) return;
    const bool all = runs.size() == out.runs.size();
    out.notes.push_back(fmt::format("{}: {}", all ? "all runs" : join(runs, ", "), what));
  };
  say("epoch_seconds", "no complete epoch, so there is no epoch time");
  say("last", "no evaluation, or none of the run's first metric");
}

}  // namespace

const std::vector<RunFigure>& run_figures() {
  static const std::vector<RunFigure> figures = {
      {"best", "", "best value of the run's first metric",
       [](const RunFigures& r) { return r.best; }},
      {"last", "", "its value in the last evaluation", [](const RunFigures& r) { return r.last; }},
      {"train_loss", "", "training loss of the last epoch",
       [](const RunFigures& r) { return r.loss; }},
      {"epoch_seconds", "s", "an epoch's steps",
       [](const RunFigures& r) { return r.epoch_seconds; }},
      {"epoch_wait_seconds", "s", "of these, waiting for other ranks and the network",
       [](const RunFigures& r) { return r.epoch_wait_seconds; }},
      {"step_seconds", "s", "a step, median", [](const RunFigures& r) { return r.step_seconds; }},
      {"items_per_second", "1/s", "images or pairs of all ranks",
       [](const RunFigures& r) { return r.items_per_second; }},
      {"wait_share", "", "share of the steps' time spent waiting",
       [](const RunFigures& r) { return r.wait_share; }},
      {"training_seconds", "s", "all steps",
       [](const RunFigures& r) { return r.training_seconds; }},
      {"wall_seconds", "s", "with evaluations and checkpoints",
       [](const RunFigures& r) { return r.wall_seconds; }},
  };
  return figures;
}

const RunFigure& run_figure(const std::string& name) {
  const auto& all = run_figures();
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.name == name; });
  if (found == all.end()) throw std::logic_error("no figure of runs is called " + name);
  return *found;
}

bool Comparison::setups_differ() const {
  return std::any_of(groups.begin(), groups.end(), [&](const ComparedGroup& group) {
    return setup_key(group.setup) != setup_key(groups.front().setup);
  });
}

bool Comparison::networks_differ() const {
  std::set<std::string> found;
  for (const ComparedGroup& group : groups) {
    if (group.network) found.insert(network_key(group.network));
  }
  return found.size() > 1;
}

bool Comparison::repeats() const {
  return std::any_of(groups.begin(), groups.end(),
                     [](const ComparedGroup& group) { return group.runs.size() > 1; });
}

std::vector<ComparedRun> read_compared(const std::vector<fs::path>& folders) {
  std::vector<ComparedRun> out;
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder)) throw ConfigError("{}: no such folder", folder.string());
    const SweepFolder sweep{folder};
    if (!is_sweep(folder)) {
      out.push_back(from_folder(folder));
      continue;
    }
    for (const CellRecord& cell : read_cells(sweep)) out.push_back(from_cell(sweep, cell));
  }
  return out;
}

namespace {

// Returns the metrics after the first that every run with evaluations has.
std::vector<std::string> common_further(const std::vector<ComparedRun>& runs) {
  std::optional<std::vector<std::string>> out;
  for (const ComparedRun& run : runs) {
    if (!run.run || run.run->metric.empty()) continue;
    const std::vector<std::string>& own = run.run->further;
    if (!out) out = own;
    std::erase_if(*out, [&](const std::string& name) {
      return std::find(own.begin(), own.end(), name) == own.end();
    });
  }
  return out.value_or(std::vector<std::string>());
}

}  // namespace

Comparison compare_runs(std::vector<ComparedRun> runs) {
  Comparison out;
  out.runs = std::move(runs);
  out.keys = differing_keys(out.runs);
  std::set<std::string> metrics;
  for (const ComparedRun& run : out.runs) {
    if (run.run && !run.run->metric.empty()) metrics.insert(run.run->metric);
  }
  if (metrics.size() == 1) {
    out.metric = *metrics.begin();
    out.further = common_further(out.runs);
  }
  add_groups(out);
  count_cores(out);
  add_scaling(out);
  add_notes(out);
  if (metrics.size() > 1) {
    out.notes.push_back(fmt::format("best and last are of each run's own metric: {}",
                                    join({metrics.begin(), metrics.end()}, ", ")));
  }
  return out;
}

std::string short_key(const std::string& key, const std::vector<std::string>& keys) {
  auto tail = [](const std::string& text) { return text.substr(text.rfind('.') + 1); };
  auto is_alike = [&](const std::string& other) {
    return other != key && tail(other) == tail(key);
  };
  return std::any_of(keys.begin(), keys.end(), is_alike) ? key : tail(key);
}

std::string network_text(const NetworkCondition& network) {
  std::string out = fmt::format("{} ms", network.delay_ms);
  if (network.rate_mbit > 0) out += fmt::format(", {} Mbit/s", network.rate_mbit);
  if (network.loss > 0) out += fmt::format(", loss {}", network.loss);
  return out;
}

std::string values_text(const Comparison& comparison, const ComparedGroup& group,
                        const std::function<bool(const std::string&)>& shown) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < comparison.keys.size(); ++i) {
    const std::string& key = comparison.keys[i];
    if (!shown(key)) continue;
    const std::string& value = group.values[i];
    parts.push_back(short_key(key, comparison.keys) + " " + (value.empty() ? "-" : value));
  }
  return join(parts, ", ");
}

}  // namespace lockstep
