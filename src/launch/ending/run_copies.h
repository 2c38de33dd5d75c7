// Which checkpoints of a run a host has, and whether they are somewhere else as well: what must be
// known before a machine is switched off.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

struct RunCopies {
  std::string newest;  // name of the newest complete checkpoint; empty: none
  std::string digest;  // of its DONE
  // RUN/mirror.json, where there is one (docs/run-folder.md).
  bool has_mirror = false;
  std::string mirrored;  // name of the newest checkpoint that was copied and checked
  bool complete = false;
  std::string error;
};

// Looks into a run folder; an absent one has nothing.
RunCopies look_at_copies(const std::filesystem::path& run);

// Whether this host's newest checkpoint is elsewhere by its own mirror.json; also when it has none.
bool is_mirrored(const RunCopies& host);

// The number of "step_900"; -1 for other names.
int64_t step_of_checkpoint(const std::string& name);

// As JSON, and back. copies_of() throws MachineError for a text that to_text() did not write.
std::string to_text(const RunCopies& copies);
RunCopies run_copies_of(const std::string& text);

}  // namespace lockstep
