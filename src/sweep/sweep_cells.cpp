#include "sweep/sweep_cells.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/compare/comparison.h"
#include "train/config/run_config.h"

namespace lockstep {

namespace {

constexpr std::size_t kLongestValue = 32;  // in a name

// One value of one key.
struct Choice {
  const SweptKey* key = nullptr;
  const WrittenValue* value = nullptr;
};
using Choices = std::vector<Choice>;

// Returns every combination of the grid with each [[cell]].
std::vector<Choices> combinations(const SweepConfig& config) {
  std::vector<Choices> out = {{}};
  for (const SweptKey& key : config.grid) {
    std::vector<Choices> longer;
    for (const Choices& choices : out) {
      for (const WrittenValue& value : key.values) {
        longer.push_back(choices);
        longer.back().push_back({&key, &value});
      }
      if (longer.size() > kMostCells) break;
    }
    out = std::move(longer);
  }
  if (config.lists.empty()) return out;
  std::vector<Choices> all;
  for (const std::vector<SweptKey>& list : config.lists) {
    for (Choices choices : out) {
      for (const SweptKey& key : list) choices.push_back({&key, &key.values.front()});
      all.push_back(std::move(choices));
    }
  }
  return all;
}

// Replaces by '-' all but letters, digits, '.' and '+', which need no quoting in shells and
// addresses.

std::string plain(const std::string& text) {
  std::string out;
  for (char c : text) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '+';
    if (good) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.substr(0, kLongestValue);
}

std::string name_of(const Choices& choices, const CellRecord& cell,
                    const std::vector<std::string>& keys) {
  std::vector<std::string> parts;
  for (const Choice& choice : choices) {
    parts.push_back(plain(short_key(choice.key->key, keys)) + "-" + plain(choice.value->text));
  }
  parts.push_back(cell.setup.text());
  if (cell.network) {
    parts.push_back(fmt::format("{}ms", cell.network->delay_ms));
    if (cell.network->rate_mbit > 0)
      parts.push_back(fmt::format("{}mbit", cell.network->rate_mbit));
    if (cell.network->loss > 0) parts.push_back(fmt::format("loss-{}", cell.network->loss));
  }
  parts.push_back(fmt::format("seed-{}", cell.seed));
  return join(parts, "_");
}

bool is_per_rank(const SweepConfig& config, const std::string& key) {
  const auto& keys = config.sweep.per_rank;
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Multiplies: for 4 ranks, "16" becomes "64".
std::string times(const WrittenValue& value, int ranks, const std::string& where,
                  const std::string& key) {
  double number = 0;
  const std::string& text = value.text;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) {
    throw ConfigError("{}: {}: expected a number, for sweep.per_rank names it; got {}", where, key,
                      value.toml);
  }
  return fmt::format("{}", number * ranks);
}

// Sets keys of a configuration and records them as words.
struct Overrides {
  ConfigSource source;
  std::vector<std::string> words;
  void set(const std::string& key, const std::string& toml, const std::string& where) {
    source.set(key, toml, where);
    words.push_back(key + "=" + toml);
  }
};

// Returns [set], and the base's values that sweep.per_rank multiplies.
std::vector<SweptKey> values_of_all(const SweepConfig& config) {
  std::vector<SweptKey> out = config.set;
  ConfigSource source = ConfigSource::from_file(config.base);
  const std::vector<WrittenEntry> base = source.take_below("");
  for (const std::string& key : config.sweep.per_rank) {
    if (key == "batch.per_rank") {
      throw ConfigError("{}: sweep.per_rank: batch.per_rank is of a rank already: leave it out",
                        config.place("sweep.per_rank"));
    }
    auto has_key = [&](const auto& entry) { return entry.key == key; };
    if (std::any_of(out.begin(), out.end(), has_key)) continue;
    if (auto found = std::find_if(base.begin(), base.end(), has_key); found != base.end()) {
      out.push_back({key, {found->value}, found->where});
    } else if (std::none_of(config.grid.begin(), config.grid.end(), has_key)) {
      std::vector<std::string> names;
      for (const WrittenEntry& entry : base) names.push_back(entry.key);
      throw ConfigError("{}: sweep.per_rank: \"{}\" has no value in [set], [grid] or {}{}",
                        config.place("sweep.per_rank"), key, config.base.string(),
                        did_you_mean(key, names));
    }
  }
  return out;
}

// Fills in what the cell runs.
void add_config(const SweepConfig& config, const Choices& choices, SweepCell& cell) {
  Overrides all{ConfigSource::from_file(config.base), {}};
  for (const auto& [key, value] : choices) {
    const bool multiplied = is_per_rank(config, key->key);
    all.set(
        key->key,
        multiplied ? times(*value, cell.record.setup.ranks(), key->where, key->key) : value->toml,
        key->where);
  }
  const std::string where = config.place("sweep.folder");
  std::string run = SweepFolder{config.sweep.folder}.run(cell.record.name).string();
  all.set("run.folder", toml_text(&run), where);
  all.set("run.seed", std::to_string(cell.record.seed), where);
  cell.words = std::move(all.words);
  cell.config = read_run_config(std::move(all.source)).to_toml();
}

std::vector<std::string> all_keys(const SweepConfig& config) {
  std::vector<std::string> out;
  for (const SweptKey& key : config.grid) out.push_back(key.key);
  for (const auto& list : config.lists) {
    for (const SweptKey& key : list) {
      if (std::find(out.begin(), out.end(), key.key) == out.end()) out.push_back(key.key);
    }
  }
  return out;
}

CellRecord record_of(const SweepConfig& config, const Choices& choices, const SetUp& setup) {
  CellRecord out;
  out.setup = setup;
  for (const Choice& choice : choices) {
    const std::string& key = choice.key->key;
    const std::string name = key + (is_per_rank(config, key) ? kPerRank : "");
    std::erase_if(out.values, [&](const auto& value) { return value.first == name; });
    out.values.emplace_back(name, choice.value->text);  // the later value counts
  }
  return out;
}

}  // namespace

std::vector<SweepCell> expand_sweep(const SweepConfig& config) {
  const std::vector<std::string> keys = all_keys(config);
  const std::vector<SweptKey> common = values_of_all(config);
  std::vector<SweepCell> out;
  std::set<std::string> names;
  for (const Choices& chosen : combinations(config)) {
    Choices choices;
    for (const SweptKey& key : common) choices.push_back({&key, &key.values.front()});
    choices.insert(choices.end(), chosen.begin(), chosen.end());
    for (const SetUp& setup : config.setups) {
      std::vector<std::optional<NetworkCondition>> networks = {std::nullopt};
      if (setup.hosts > 1 && config.hosts.hosts.empty()) {
        networks.assign(config.conditions.begin(), config.conditions.end());
      }
      for (const auto& network : networks) {
        for (int64_t seed : config.seeds) {
          SweepCell cell{.record = record_of(config, choices, setup), .config = {}, .words = {}};
          cell.record.network = network;
          cell.record.seed = seed;
          std::string name = name_of(chosen, cell.record, keys);
          for (int number = 2; !names.insert(name).second; ++number) {
            name = fmt::format("{}_{}", name_of(chosen, cell.record, keys), number);
          }
          cell.record.name = name;
          add_config(config, choices, cell);
          out.push_back(std::move(cell));
          if (out.size() > kMostCells) {
            throw ConfigError("{}: more than {} cells", config.file.string(), kMostCells);
          }
        }
      }
    }
  }
  return out;
}

std::string virtual_host(int index) { return fmt::format("node{}", index + 1); }

std::string lab_toml(const SweepConfig& config, const CellRecord& cell) {
  std::vector<std::string> names;
  for (int i = 0; i < cell.setup.hosts; ++i) names.push_back(virtual_host(i));
  std::vector<std::string> sysctl = config.network.sysctl;
  const NetworkCondition network = cell.network.value_or(NetworkCondition{});
  return fmt::format(
      "[network]\ndelay_ms = {}\nrate_mbit = {}\nloss = {}\ncontrol = \"separate\"\n\n"
      "[hosts]\nnames = {}\ncpu = {}\nsysctl = {}\n",
      network.delay_ms, network.rate_mbit, network.loss, toml_text(&names), config.network.cpu,
      toml_text(&sysctl));
}

std::string hosts_file(const SweepConfig& config, const CellRecord& cell) {
  std::string out;
  for (int i = 0; i < cell.setup.hosts; ++i) {
    const Host& host = config.hosts.hosts[static_cast<std::size_t>(i)];
    const bool brackets = host.name.find(':') != std::string::npos;  // IPv6 addresses need brackets
    out += fmt::format("{}{}{} slots={}", brackets ? "[" : "", host.name, brackets ? "]" : "",
                       cell.setup.ranks_per_host);
    if (host.by_ssh || host.ssh_name != host.name) out += " ssh=" + host.ssh_name;
    if (!host.address.empty()) out += " address=" + host.address;
    out += "\n";
  }
  return out;
}

}  // namespace lockstep
