#include "report/run/sweep_cell.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const CellRecord& cell) {
  Json values = Json::object();
  for (const auto& [key, value] : cell.values) values[key] = value;
  Json network = nullptr;
  if (cell.network) {
    network = {{"delay_ms", cell.network->delay_ms},
               {"rate_mbit", cell.network->rate_mbit},
               {"loss", cell.network->loss}};
  }
  return {{"version", 1},
          {"name", cell.name},
          {"values", values},
          {"hosts", cell.setup.hosts},
          {"ranks_per_host", cell.setup.ranks_per_host},
          {"network", network},
          {"seed", cell.seed},
          {"state", cell.state},
          {"exit_code", cell.exit_code},
          {"error", cell.error},
          {"attempts", cell.attempts},
          {"seconds", cell.seconds}};
}

CellRecord from_json(const Json& json) {
  CellRecord out;
  json.at("name").get_to(out.name);
  for (const auto& [key, value] : json.at("values").items()) {
    out.values.emplace_back(key, value.get<std::string>());
  }
  json.at("hosts").get_to(out.setup.hosts);
  json.at("ranks_per_host").get_to(out.setup.ranks_per_host);
  const Json& network = json.at("network");
  if (!network.is_null()) {
    out.network = NetworkCondition{.delay_ms = network.at("delay_ms").get<double>(),
                                   .rate_mbit = network.at("rate_mbit").get<double>(),
                                   .loss = network.at("loss").get<double>()};
  }
  json.at("seed").get_to(out.seed);
  json.at("state").get_to(out.state);
  json.at("exit_code").get_to(out.exit_code);
  json.at("error").get_to(out.error);
  json.at("attempts").get_to(out.attempts);
  json.at("seconds").get_to(out.seconds);
  return out;
}

// Calls `read` with the file's JSON; reports any error in it as the file's.
template <typename Read>
auto read_record(const fs::path& path, const Read& read) {
  try {
    return read(Json::parse(read_file(path)));
  } catch (const Json::exception& error) {
    throw DataError("{}: is damaged: {}", path.string(), error.what());
  }
}

}  // namespace

std::string SetUp::text() const { return fmt::format("{}x{}", hosts, ranks_per_host); }

void write_cell(const SweepFolder& folder, const CellRecord& cell) {
  fs::create_directories(folder.cell(cell.name));
  write_file(folder.record(cell.name), to_json(cell).dump(2) + "\n");
}

std::optional<CellRecord> read_cell(const SweepFolder& folder, const std::string& name) {
  const fs::path path = folder.record(name);
  if (!fs::exists(path)) return std::nullopt;
  return read_record(path, from_json);
}

void write_sweep_index(const SweepFolder& folder, const std::vector<std::string>& cells) {
  fs::create_directories(folder.path);
  const Json index = {{"version", 1}, {"cells", cells}};
  write_file(folder.index(), index.dump(2) + "\n");
}

bool is_sweep(const fs::path& folder) { return fs::exists(SweepFolder{folder}.index()); }

std::vector<CellRecord> read_cells(const SweepFolder& folder) {
  if (!is_sweep(folder.path)) {
    throw DataError("{}: holds no sweep (no sweep.json)", folder.path.string());
  }
  auto names = read_record(folder.index(), [](const Json& json) {
    return json.at("cells").get<std::vector<std::string>>();
  });
  std::vector<CellRecord> out;
  for (const std::string& name : names) {
    std::optional<CellRecord> cell = read_cell(folder, name);
    if (!cell) {
      throw DataError("{}: is missing, but sweep.json names it", folder.record(name).string());
    }
    out.push_back(std::move(*cell));
  }
  return out;
}

}  // namespace lockstep
