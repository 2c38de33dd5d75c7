// Makes the run folder here of what its hosts have: files of one host are copied, those that
// several have a part of are joined (launch/fetch/run_join.h). Each appears whole, by renaming.
#pragma once

#include <string>
#include <vector>

#include "launch/fetch/fetch_state.h"

namespace lockstep {

class RunPublisher {
 public:
  // `hosts` have precedence in their order among those that never had rank 0. `launch_log` is the
  // launch.jsonl of a launcher here; empty: none. `state` must outlive it.
  RunPublisher(FetchState& state, fs::path to, std::vector<std::string> hosts, fs::path launch_log);

  // The hosts, those first on which rank 0 was last. A file that only one can give is of the first.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // The hosts on which rank 0 was, in the order of its last attempts there.
  std::vector<std::string> hosts_of_rank0() const;

  // Writes what changed since the last time; returns how many files. Throws ConfigError where a
  // file here was changed by somebody else, MachineError when the disk refuses.
  int publish();

 private:
  struct Part {
    std::string host, path;
    KeptFile file;
  };
  std::vector<Part> parts_of(const std::string& path) const;
  bool publish_one(const std::string& path, const std::vector<Part>& parts);
  int publish_numbered(const std::string& before, const std::string& after, int first);
  int publish_launch_events();
  bool write_joined(const std::string& path, const std::vector<Part>& parts, const fs::path& local);

  FetchState& state_;
  fs::path to_;
  std::vector<std::string> hosts_;
  std::vector<double> attempts_;  // by host: when the newest of its rank 0 began; 0: never
  fs::path launch_log_;
};

}  // namespace lockstep
