// The folder of a run and the names of what lies in it (docs/run-folder.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
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
  fs::path lock() const { return path_ / "lock"; }
  fs::path times() const { return path_ / "times"; }
  fs::path bad_batches() const { return path_ / "bad_batches"; }
  fs::path trace() const { return path_ / "trace"; }
  fs::path shares() const { return path_ / "shares.jsonl"; }
  fs::path samples() const { return path_ / "samples.txt"; }

  // Makes the folder itself, and in it that of the logs. Throws ConfigError where no path is set.
  void make() const;
  // Makes the folder with its configuration and versions. Throws ConfigError when it already holds
  // a run (any config.toml or checkpoint): nothing is overwritten. The exception is a run that
  // failed before it trained (no metrics.jsonl, no checkpoint, a rank's .error), of which only the
  // ranks' logs stay.
  void create(const std::string& config_toml, const std::string& versions) const;
  // Makes what the folder lacks, for a resumed run or on a machine that does not see rank 0's
  // folder.
  void complete(const std::string& config_toml, const std::string& versions) const;
  // Takes create() back: the folder holds no run any more, but logs.
  void withdraw() const;
  // The launcher's id of the job, common to all its attempts, that works in this folder.
  std::string job_id() const;  // empty: nobody wrote it
  void set_job_id(const std::string& id) const;
  // Throws ConfigError when the folder holds no run.
  void require_run() const;
  // The error of a --resume without a run.
  ConfigError nothing_to_resume() const;

 private:
  bool clear_failed_start() const;  // returns whether there was one

  fs::path path_;
};

std::string libtorch_version();  // "2.13.0"

// Returns the versions of lockstep, libtorch, compiler and kernel, one per line.
std::string version_text();

}  // namespace lockstep
