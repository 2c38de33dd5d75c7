#include "train/folder/run_folder.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace lockstep {

fs::path RunFolder::log_of(int rank) const { return logs() / fmt::format("rank{:02}.log", rank); }
fs::path RunFolder::error_of(int rank) const {
  return logs() / fmt::format("rank{:02}.error", rank);
}

// Clears the folder of a run that failed before it trained (bad data, weights that do not fit).
// When several processes do so at once, only one of them removes the first error file, which all
// remove last. The configuration, which create() asks for, goes when nothing else is left to
// remove.
bool RunFolder::clear_failed_start() const {
  std::error_code failed;
  if (fs::exists(metrics()) || !fs::is_empty(checkpoints(), failed) || failed) return false;
  std::set<fs::path, std::greater<>> errors;
  for (const auto& entry : fs::directory_iterator(logs(), failed)) {
    if (entry.path().extension() == ".error") errors.insert(entry.path());
  }
  bool ours = false;
  for (const fs::path& error : errors) ours = fs::remove(error, failed);
  if (ours) withdraw();
  return ours;
}

void RunFolder::withdraw() const {
  std::error_code failed;
  for (const fs::path& made : {version(), job(), shares(), config()}) {
    fs::remove(made, failed);
  }
}

void RunFolder::make() const {
  if (path_.empty()) {
    throw ConfigError("run.folder: not set; expected the folder to keep the run in");
  }
  std::error_code failed;
  fs::create_directories(logs(), failed);
  if (failed) throw MachineError("{}: cannot be created: {}", path_.string(), failed.message());
}

void RunFolder::create(const std::string& config_toml, const std::string& versions) const {
  make();
  if (clear_failed_start()) {
    log_info("{}: the run there failed before its first step and makes room", path_.string());
  }
  std::error_code failed;
  fs::create_directories(checkpoints(), failed);
  if (failed) throw MachineError("{}: cannot be created: {}", path_.string(), failed.message());
  // Only one process succeeds, should two take themselves for the first rank. The configuration is
  // what makes it a run: a process that is killed before leaves room for another.
  if (!fs::is_empty(checkpoints()) || !write_new_file(config(), config_toml)) {
    ConfigError error("{}: already holds a run", path_.string());
    error.set_advice(fmt::format("--resume to go on with it, or run.folder={}-2", path_.string()));
    throw error;
  }
  complete(config_toml, versions);
}

void RunFolder::complete(const std::string& config_toml, const std::string& versions) const {
  make();
  std::error_code failed;
  fs::create_directories(checkpoints(), failed);
  if (failed) throw MachineError("{}: cannot be created: {}", path_.string(), failed.message());
  if (!fs::exists(version())) write_file(version(), versions);
  if (!fs::exists(config())) write_file(config(), config_toml);
}

std::string RunFolder::job_id() const {
  return fs::exists(job()) ? std::string(trim(read_file(job()))) : "";
}

void RunFolder::set_job_id(const std::string& id) const { write_file(job(), id + "\n"); }

void RunFolder::require_run() const {
  if (fs::exists(config())) return;
  ConfigError error("{}: holds no run (no config.toml)", path_.string());
  error.set_advice("the folder that `lockstep train` wrote, as runs/quickstart");
  throw error;
}

ConfigError RunFolder::nothing_to_resume() const {
  ConfigError error("{}: holds no run to go on with", path_.string());
  error.set_advice("--resume=auto, or without --resume, to start one there");
  return error;
}

std::string libtorch_version() { return TORCH_VERSION; }

std::string version_text() {
  utsname system{};
  uname(&system);
  return fmt::format("lockstep {}\nlibtorch {}\ncompiler {}\nsystem {} {} {}\nhost {}\n",
                     LOCKSTEP_VERSION, TORCH_VERSION, __VERSION__, system.sysname, system.release,
                     system.machine, system.nodename);
}

}  // namespace lockstep
