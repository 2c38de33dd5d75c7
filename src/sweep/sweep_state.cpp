#include "sweep/sweep_state.h"

#include "base/error.h"
#include "config/source.h"

namespace lockstep {

namespace {

const SweepFolder& made_folder(const SweepFolder& folder) {
  std::error_code failed;
  fs::create_directories(folder.path, failed);
  if (failed) {
    throw MachineError("{}: cannot be created: {}", folder.path.string(), failed.message());
  }
  return folder;
}

// Describes the first key whose value differs; a key that only one of them has is of another
// version.
std::string difference(const std::string& former, const std::string& now) {
  auto entries = [](const std::string& toml) {
    return ConfigSource::from_text(toml, "config.toml").take_below("");
  };
  for (const WrittenEntry& a : entries(former)) {
    for (const WrittenEntry& b : entries(now)) {
      if (a.key == b.key && a.value.toml != b.value.toml) {
        return fmt::format("{} was {}, is now {}", a.key, a.value.toml, b.value.toml);
      }
    }
  }
  return "";
}

}  // namespace

bool has_checkpoint(const fs::path& run) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", failed)) {
    if (fs::exists(entry.path() / "DONE")) return true;
  }
  return false;
}

SweepLock::SweepLock(const SweepFolder& folder) : lock_(made_folder(folder).lock()) {
  if (lock_.try_lock()) return;
  ConfigError error("{}: another sweep works in this folder", folder.path.string());
  error.set_advice("wait for it, or another sweep.folder");
  throw error;
}

void find_former(const SweepFolder& folder, std::vector<SweepCell>& cells) {
  for (SweepCell& cell : cells) {
    std::optional<CellRecord> former = read_cell(folder, cell.record.name);
    if (!former || former->attempts == 0) continue;
    const fs::path config = folder.config(cell.record.name);
    const std::string changed =
        fs::exists(config) ? difference(read_file(config), cell.config) : "";
    const bool kept = former->is_over() || has_checkpoint(folder.run(cell.record.name));
    if (!changed.empty() && !kept) continue;  // nothing came of it: it starts again
    if (!changed.empty()) {
      ConfigError error("{}: was run with other values: {}", folder.cell(cell.record.name).string(),
                        changed);
      error.set_advice("another sweep.folder; or remove the cell's folder to run it anew");
      throw error;
    }
    cell.record.state = former->state;
    cell.record.exit_code = former->exit_code;
    cell.record.error = former->error;
    cell.record.attempts = former->attempts;
    cell.record.seconds = former->seconds;
  }
}

}  // namespace lockstep
