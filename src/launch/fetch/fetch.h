// Brings the run folder of a run on hosts together here: what rank 0 wrote, each rank's logs,
// checkpoints, the launcher's events (docs/launch.md#fetch). Hosts that share nothing have a part
// each; after a restart without rank 0's host, attempts are on several. The hosts need ssh, sh,
// find, stat, head, tail and sha256sum.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "launch/fetch/held_checkpoints.h"
#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

struct RunFetchOptions {
  HostList hosts;
  RemoteOptions remote;
  // Where the run may be on a host: absolute, or "~/..." in each one's own home. The first that is
  // there counts; the first of all names the run.
  std::vector<std::string> folders;
  fs::path to;          // the folder here
  fs::path launch_log;  // launch.jsonl of a launcher that runs here; may be absent
  CheckpointChoice checkpoints = CheckpointChoice::kNewestAndBest;
  bool logs_only = false;
  std::function<void(const std::string& line)> on_note;
  std::function<void(int64_t moved, int64_t all)> on_progress;  // bytes
};

struct FetchSummary {
  int64_t moved_bytes = 0;
  int written_files = 0;                 // of the folder here, without checkpoints
  std::vector<std::string> checkpoints;  // here now, of those that were chosen
};

// May be called again, while the run goes on as well: it goes on where it was broken off, and moves
// what has changed. Removes nothing. Throws ConfigError when no host has the folder, or when the
// folder here holds something else; MachineError when a host could not be asked, once what the
// others have is here, and when the disk here is full.
FetchSummary fetch_run(const RunFetchOptions& options);

}  // namespace lockstep
