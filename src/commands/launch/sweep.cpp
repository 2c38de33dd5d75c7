#include "commands/launch/sweep.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/table.h"
#include "commands/process/process_setup.h"
#include "report/compare/comparison_table.h"
#include "sweep/sweep_runner.h"

namespace lockstep {

namespace {

// Checks that virtual hosts can be made, if set-ups of several hosts have no real ones.
void check_virtual_hosts(const SweepConfig& config) {
  if (!config.hosts.hosts.empty()) return;
  for (const SetUp& setup : config.setups) {
    if (setup.hosts == 1) continue;
    std::string missing;
    if (::geteuid() != 0) missing = "which need root";
    if (missing.empty() && ::access("/dev/net/tun", R_OK | W_OK) != 0) {
      missing = "which need /dev/net/tun";
    }
    if (missing.empty() && ::access("/usr/sbin/sshd", X_OK) != 0) {
      missing = "which need openssh-server";
    }
    if (missing.empty()) return;
    ConfigError error("{}: sweep.setups: \"{}\" runs on virtual hosts, {}",
                      config.place("sweep.setups"), setup.text(), missing);
    error.set_advice("set-ups of one host, or real ones in [hosts] (docs/report.md)");
    throw error;
  }
}

void print_plan(const std::vector<SweepCell>& cells) {
  std::vector<std::vector<std::string>> rows = {{"", "cell", "set-up", "network", "seed", "state"}};
  int over = 0, timed = 0;
  double seconds = 0;
  for (const SweepCell& cell : cells) {
    const CellRecord& r = cell.record;
    rows.push_back({std::to_string(rows.size()), r.name, r.setup.text(),
                    r.network ? network_text(*r.network) : "-", std::to_string(r.seed), r.state});
    over += r.is_over() ? 1 : 0;
    timed += r.state == "done" ? 1 : 0;
    seconds += r.state == "done" ? r.seconds : 0;
  }
  fmt::print("{}", format_table(rows, "r"));
  const int left = static_cast<int>(cells.size()) - over;
  fmt::print("{} cells, {} to run", cells.size(), left);
  if (timed > 0)
    fmt::print("; about {}, one after the other", short_duration(seconds / timed * left));
  fmt::print("\n");
}

// Writes the table of all cells, on the console and as files.
void write_results(const SweepFolder& folder) {
  const Comparison comparison = compare_runs(read_compared({folder.path}));
  write_file(folder.path / "results.csv", comparison_csv(comparison));
  write_file(folder.path / "results.json", comparison_json(comparison).dump(2) + "\n");
  fmt::print("{}", comparison_text(comparison));
}

}  // namespace

int sweep(const Arguments& arguments) {
  std::vector<std::string> words;
  bool dry_run = false, keys = false;
  CommandLine app(
      "Runs every cell of a sweep: values x set-ups x networks x seeds (docs/report.md).",
      "lockstep sweep");
  app.add_option("words", words, "FILE.toml and key=value words that override it");
  app.add_flag("--dry-run", dry_run, "check all, show the cells and how they stand, run nothing");
  app.add_flag("--keys", keys, "the keys of a sweep's file");
  if (!app.parse(arguments)) return kExitOk;
  if (keys) {
    fmt::print("{}", SweepConfig::help());
    return kExitOk;
  }
  const std::vector<std::string> settings = take_settings(words);
  if (words.size() != 1) {
    throw ConfigError(
        "sweep: expected one file and key=value words, got {} files; see: lockstep "
        "sweep --help",
        words.size());
  }
  const SweepConfig config = read_sweep_config(words.front(), settings);
  const SweepFolder folder{config.sweep.folder};
  std::vector<SweepCell> cells = expand_sweep(config);
  if (dry_run) {
    find_former(folder, cells);
    print_plan(cells);
    return kExitOk;
  }
  check_virtual_hosts(config);
  const SweepLock lock(folder);
  find_former(folder, cells);
  write_file(folder.path / "sweep.toml", read_file(config.file));
  const SweepOutcome outcome = run_sweep(config, std::move(cells));
  write_results(folder);
  std::string text = fmt::format("{} done", outcome.done);
  if (outcome.failed > 0) text += fmt::format(", {} failed", outcome.failed);
  if (outcome.left > 0) text += fmt::format(", {} left: the same command goes on", outcome.left);
  log_info("{}; plots: lockstep compare {} --out {}", text, folder.path.string(),
           (folder.path / "compare").string());
  return outcome.exit_code;
}

}  // namespace lockstep
