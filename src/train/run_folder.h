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
  fs::path events() const { return path_ / "events"; }
  fs::path logs() const { return path_ / "logs"; }
  fs::path log_of(int rank) const;
  fs::path error_of(int rank) const;
  fs::path checkpoints() const { return path_ / "checkpoints"; }
  fs::path samples() const { return path_ / "samples.txt"; }

  // Makes the folder with its configuration and versions. ConfigError when it already holds a run
  // (any config.toml or checkpoint): nothing is overwritten.
  void create(const std::string& config_toml, const std::string& versions) const;
  // ConfigError when it holds no run.
  void require_run() const;

 private:
  fs::path path_;
};

// Versions of lockstep, libtorch, compiler and kernel, one a line.
std::string version_text();

}  // namespace lockstep
