#include "train/run_folder.h"

#include <sys/utsname.h>
#include <torch/version.h>
#include <unistd.h>

#include "base/error.h"

namespace lockstep {

fs::path RunFolder::log_of(int rank) const { return logs() / fmt::format("rank{:02}.log", rank); }
fs::path RunFolder::error_of(int rank) const {
  return logs() / fmt::format("rank{:02}.error", rank);
}

void RunFolder::create(const std::string& config_toml, const std::string& versions) const {
  if (path_.empty()) {
    throw ConfigError("run.folder: not set; expected the folder to keep the run in");
  }
  if (fs::exists(config()) || fs::exists(checkpoints())) {
    ConfigError error("{}: already holds a run", path_.string());
    error.set_advice(fmt::format("--resume to go on with it, or run.folder={}-2", path_.string()));
    throw error;
  }
  std::error_code failed;
  fs::create_directories(checkpoints(), failed);
  if (!failed) fs::create_directories(logs(), failed);
  if (failed) throw MachineError("{}: cannot be created: {}", path_.string(), failed.message());
  write_file(version(), versions);
  write_file(config(), config_toml);
}

void RunFolder::require_run() const {
  if (fs::exists(config())) return;
  ConfigError error("{}: holds no run (no config.toml)", path_.string());
  error.set_advice("the folder that `lockstep train` wrote, as runs/quickstart");
  throw error;
}

std::string version_text() {
  utsname system{};
  uname(&system);
  return fmt::format("lockstep {}\nlibtorch {}\ncompiler {}\nsystem {} {} {}\nhost {}\n",
                     LOCKSTEP_VERSION, TORCH_VERSION, __VERSION__, system.sysname, system.release,
                     system.machine, system.nodename);
}

}  // namespace lockstep
