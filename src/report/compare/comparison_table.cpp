#include "report/compare/comparison_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/table.h"
#include "base/text.h"
#include "report/draw/plot.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

std::string setup_text(const std::optional<SetUp>& setup) { return setup ? setup->text() : "-"; }

// Returns "3", or "2 of 3" when some are not done.
std::string runs_text(const Comparison& comparison, const ComparedGroup& group) {
  const auto done = std::count_if(group.runs.begin(), group.runs.end(),
                                  [&](std::size_t i) { return comparison.runs[i].is_done(); });
  if (static_cast<std::size_t>(done) == group.runs.size()) return std::to_string(done);
  return fmt::format("{} of {}", done, group.runs.size());
}

// Returns "done", or the states of those that are not: "failed", "waiting".
std::string group_state(const Comparison& comparison, const ComparedGroup& group) {
  std::set<std::string> states;
  for (std::size_t i : group.runs) {
    if (!comparison.runs[i].is_done()) states.insert(comparison.runs[i].state);
  }
  return states.empty() ? "done" : join({states.begin(), states.end()}, ", ");
}

struct Column {
  std::string title;
  std::vector<std::string> cells;
  char alignment = 'r';
  bool always = false;  // shown even when it says nothing
};

// Formats a share as percent, to a tenth: step times are not more exact.
std::string percent_text(const Spread& share) {
  if (share.count == 0) return "-";
  if (share.count == 1) return fmt::format("{:.1f}", 100 * share.mean);
  return fmt::format("{:.1f} ± {:.1f}", 100 * share.mean, 100 * share.deviation);
}

Spread scaled(Spread spread, double factor) {
  spread.mean *= factor;
  spread.deviation *= factor;
  return spread;
}

std::string optional_text(const std::optional<double>& value, double factor, const char* unit) {
  return value ? fmt::format("{:.{}f}{}", *value * factor, factor == 1 ? 2 : 0, unit)
               : std::string("-");
}

std::vector<Column> columns_of(const Comparison& c) {
  std::vector<Column> out;
  auto add = [&](const std::string& title, char alignment, bool always, auto cell_of) {
    Column column{.title = title, .cells = {}, .alignment = alignment, .always = always};
    for (const ComparedGroup& group : c.groups) column.cells.push_back(cell_of(group));
    out.push_back(std::move(column));
  };
  const bool named = c.keys.empty() && !c.setups_differ() && !c.networks_differ();
  if (named || c.groups.size() == c.runs.size()) {
    const bool plain = std::any_of(c.runs.begin(), c.runs.end(), [](const ComparedRun& run) {
      return run.state == "finished" || run.name.find('/') != std::string::npos;
    });
    if (plain) {
      add("run", 'l', true, [&](const ComparedGroup& g) {
        return g.runs.size() == 1 ? c.runs[g.runs[0]].name
                                  : fmt::format("{}, ...", c.runs[g.runs[0]].name);
      });
    }
  }
  for (std::size_t i = 0; i < c.keys.size(); ++i) {
    add(short_key(c.keys[i], c.keys), 'r', true,
        [&](const ComparedGroup& g) { return g.values[i].empty() ? "-" : g.values[i]; });
  }
  add("set-up", 'l', true, [](const ComparedGroup& g) { return setup_text(g.setup); });
  add("network", 'l', false, [](const ComparedGroup& g) {
    return g.network ? network_text(*g.network) : std::string("-");
  });
  add("runs", 'r', true, [&](const ComparedGroup& g) { return runs_text(c, g); });
  const bool all_done = std::all_of(c.runs.begin(), c.runs.end(),
                                    [](const ComparedRun& run) { return run.is_done(); });
  if (!all_done) add("state", 'l', true, [&](const ComparedGroup& g) { return group_state(c, g); });
  auto figure = [&](const char* name, const std::string& title, double factor = 1) {
    add(title, 'r', false, [&, factor](const ComparedGroup& g) {
      return spread_text(scaled(g.figures.at(name), factor));
    });
  };
  const std::string metric = c.metric.empty() ? "metric" : c.metric;
  figure("best", "best " + metric);
  figure("last", "last " + metric);
  figure("train_loss", "train loss");
  figure("epoch_seconds", "epoch s");
  figure("step_seconds", "step ms", 1000);
  add("wait %", 'r', false,
      [](const ComparedGroup& g) { return percent_text(g.figures.at("wait_share")); });
  figure("items_per_second", "items/s");
  add("speed-up", 'r', false,
      [&](const ComparedGroup& g) { return optional_text(g.speedup, 1, ""); });
  add("efficiency", 'r', false,
      [&](const ComparedGroup& g) { return optional_text(g.efficiency, 100, " %"); });
  add("total", 'r', false, [](const ComparedGroup& g) {
    const Spread& wall = g.figures.at("wall_seconds");
    return wall.count == 0 ? std::string("-") : short_duration(wall.mean);
  });
  std::erase_if(out, [](const Column& column) {
    return !column.always && std::all_of(column.cells.begin(), column.cells.end(),
                                         [](const std::string& cell) { return cell == "-"; });
  });
  return out;
}

Json json_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json network_json(const std::optional<NetworkCondition>& network) {
  if (!network) return nullptr;
  return {
      {"delay_ms", network->delay_ms}, {"rate_mbit", network->rate_mbit}, {"loss", network->loss}};
}

Json group_json(const Comparison& c, const ComparedGroup& group) {
  Json values = Json::object(), figures = Json::object(), runs = Json::array();
  for (std::size_t i = 0; i < c.keys.size(); ++i) values[c.keys[i]] = group.values[i];
  for (const RunFigure& figure : run_figures()) {
    const Spread& spread = group.figures.at(figure.name);
    if (spread.count == 0) {
      figures[figure.name] = nullptr;
      continue;
    }
    Json deviation = spread.count > 1 ? Json(spread.deviation) : Json(nullptr);
    figures[figure.name] = {
        {"mean", spread.mean}, {"deviation", deviation}, {"count", spread.count}};
  }
  for (std::size_t i : group.runs) runs.push_back(c.runs[i].name);
  return {{"values", values},
          {"setup", group.setup ? Json(group.setup->text()) : Json(nullptr)},
          {"ranks", group.setup ? Json(group.setup->ranks()) : Json(nullptr)},
          {"hosts", group.setup ? Json(group.setup->hosts) : Json(nullptr)},
          {"network", network_json(group.network)},
          {"state", group_state(c, group)},
          {"runs", runs},
          {"figures", figures},
          {"speedup", json_or_null(group.speedup)},
          {"efficiency", json_or_null(group.efficiency)}};
}

Json run_json(const ComparedRun& run) {
  Json figures = Json::object(), last = Json::object();
  for (const RunFigure& figure : run_figures()) {
    figures[figure.name] = run.run ? json_or_null(figure.of(*run.run)) : Json(nullptr);
  }
  if (run.run) {
    for (const auto& [name, value] : run.run->last_of) last[name] = value;
  }
  return {{"name", run.name},
          {"state", run.state},
          {"error", run.error},
          {"seed", run.seed},
          {"folder", run.run ? Json(run.run->folder.string()) : Json(nullptr)},
          {"steps", run.run ? Json(run.run->steps) : Json(nullptr)},
          {"total_steps", run.run ? Json(run.run->total_steps) : Json(nullptr)},
          {"figures", figures},
          {"last_evaluation", last}};
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::vector<std::string> out;
  for (const std::string& cell : cells) out.push_back(csv_cell(cell));
  return join(out, ",") + "\n";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::vector<std::string> network_cells(const std::optional<NetworkCondition>& network) {
  if (!network) return {"", "", ""};
  return {fmt::format("{}", network->delay_ms), fmt::format("{}", network->rate_mbit),
          fmt::format("{}", network->loss)};
}

}  // namespace

TextTable comparison_table(const Comparison& comparison) {
  TextTable out;
  out.rows.resize(comparison.groups.size());
  for (const Column& column : columns_of(comparison)) {
    out.header.push_back(column.title);
    out.alignment += column.alignment;
    for (std::size_t i = 0; i < column.cells.size(); ++i) out.rows[i].push_back(column.cells[i]);
  }
  return out;
}

std::string comparison_text(const Comparison& comparison) {
  const TextTable table = comparison_table(comparison);
  std::vector<std::vector<std::string>> rows = {table.header};
  rows.insert(rows.end(), table.rows.begin(), table.rows.end());
  std::string out = format_table(rows, table.alignment);
  for (const std::string& note : comparison.notes) out += note + "\n";
  return out;
}

std::string comparison_csv(const Comparison& c) {
  std::vector<std::string> header = c.keys;
  for (const char* name :
       {"setup", "hosts", "ranks", "delay_ms", "rate_mbit", "loss", "state", "runs", "done"}) {
    header.emplace_back(name);
  }
  for (const RunFigure& figure : run_figures()) {
    header.push_back(figure.name);
    header.push_back(figure.name + "_sd");
  }
  header.insert(header.end(), {"speedup", "efficiency"});
  std::string out = csv_line(header);
  for (const ComparedGroup& group : c.groups) {
    std::vector<std::string> cells = group.values;
    if (group.setup) {
      cells.insert(cells.end(), {group.setup->text(), std::to_string(group.setup->hosts),
                                 std::to_string(group.setup->ranks())});
    } else {
      cells.insert(cells.end(), {"", "", ""});
    }
    for (const std::string& cell : network_cells(group.network)) cells.push_back(cell);
    const auto done = std::count_if(group.runs.begin(), group.runs.end(),
                                    [&](std::size_t i) { return c.runs[i].is_done(); });
    cells.insert(cells.end(),
                 {group_state(c, group), std::to_string(group.runs.size()), std::to_string(done)});
    for (const RunFigure& figure : run_figures()) {
      const Spread& spread = group.figures.at(figure.name);
      cells.push_back(spread.count > 0 ? fmt::format("{}", spread.mean) : "");
      cells.push_back(spread.count > 1 ? fmt::format("{}", spread.deviation) : "");
    }
    cells.insert(cells.end(), {csv_number(group.speedup), csv_number(group.efficiency)});
    out += csv_line(cells);
  }
  return out;
}

Json comparison_json(const Comparison& c) {
  Json groups = Json::array(), runs = Json::array();
  for (const ComparedGroup& group : c.groups) groups.push_back(group_json(c, group));
  for (const ComparedRun& run : c.runs) runs.push_back(run_json(run));
  return {{"version", 1},
          {"keys", c.keys},
          {"metric", c.metric.empty() ? Json(nullptr) : Json(c.metric)},
          {"notes", c.notes},
          {"groups", groups},
          {"runs", runs}};
}

std::string epochs_csv(const Comparison& c) {
  std::set<std::string> metrics;
  for (const ComparedRun& run : c.runs) {
    if (!run.run) continue;
    for (const EpochFigures& epoch : run.run->epochs) {
      for (const auto& [name, value] : epoch.evaluation) metrics.insert(name);
    }
  }
  std::vector<std::string> header = {"run", "setup"};
  header.insert(header.end(), c.keys.begin(), c.keys.end());
  for (const char* name : {"delay_ms", "rate_mbit", "loss", "seed", "epoch", "steps", "complete",
                           "seconds", "wait_seconds", "items_per_second", "train_loss"}) {
    header.emplace_back(name);
  }
  for (const std::string& name : metrics) header.push_back("eval_" + name);
  std::string out = csv_line(header);
  for (const ComparedGroup& group : c.groups) {
    for (std::size_t i : group.runs) {
      const ComparedRun& run = c.runs[i];
      if (!run.run) continue;
      for (const EpochFigures& e : run.run->epochs) {
        std::vector<std::string> cells = {run.name, run.setup ? run.setup->text() : ""};
        cells.insert(cells.end(), group.values.begin(), group.values.end());
        for (const std::string& cell : network_cells(run.network)) cells.push_back(cell);
        cells.insert(cells.end(), {run.seed, std::to_string(e.epoch), std::to_string(e.steps),
                                   e.complete ? "1" : "0", fmt::format("{}", e.seconds),
                                   fmt::format("{}", e.wait_seconds),
                                   e.seconds > 0 ? fmt::format("{}", e.items / e.seconds) : "",
                                   fmt::format("{}", e.loss)});
        for (const std::string& name : metrics) {
          auto found = e.evaluation.find(name);
          cells.push_back(found == e.evaluation.end() ? "" : fmt::format("{}", found->second));
        }
        out += csv_line(cells);
      }
    }
  }
  return out;
}

}  // namespace lockstep
