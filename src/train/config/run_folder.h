// The folder of a run and the names of what lies in it (docs/run-folder.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

class RunFolder {
 public:
  explicit RunFolder(fs::path path) : path_(std::move(path)) {}

  const fs::path& path() const { return path_; }
  fs::path config() const { return path_ / "config.toml"; }
  fs::path version() const { return path_ / "version.txt"; }
  fs::path metrics() const { return path_ / "metrics.jsonl"; }
  fs::path epochs() const { return path_ / "epochs.csv"; }
  fs::path live() const { return path_ / "live.json"; }
  fs::path events() const { return path_ / "events"; }
  fs::path logs() const { return path_ / "logs"; }
  fs::path log_of(int rank) const;
  fs::path error_of(int rank) const;
  fs::path checkpoints() const { return path_ / "checkpoints"; }
  fs::path job() const { return path_ / "job.txt"; }
  fs::path times() const { return path_ / "times"; }
  fs::path trace() const { return path_ / "trace"; }
  fs::path samples() const { return path_ / "samples.txt"; }

  // Makes the folder with its configuration and versions. ConfigError when it already holds a run
  // (any config.toml or checkpoint): nothing is overwritten, but for a run that failed before it
  // trained (no metrics.jsonl, no checkpoint, a rank's .error), of which only the ranks' logs stay.
  void create(const std::string& config_toml, const std::string& versions) const;
  // Makes what is missing of it: a folder that goes on, or one that another machine's rank 0 has.
  void complete(const std::string& config_toml, const std::string& versions) const;
  // Which job, of all its attempts, works here: the launcher's id of it.
  std::string job_id() const;  // empty: nobody wrote it
  void set_job_id(const std::string& id) const;
  // ConfigError when it holds no run.
  void require_run() const;

 private:
  bool clear_failed_start() const;  // whether there was one

  fs::path path_;
};

std::string libtorch_version();  // "2.13.0"

// Versions of lockstep, libtorch, compiler and kernel, one a line.
std::string version_text();

}  // namespace lockstep
