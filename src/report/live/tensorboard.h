// The user's TensorBoard on the events of runs: where it is, and what it is told to show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

struct EventFolder {
  std::string name;  // as TensorBoard shows it: that of the run's folder
  fs::path path;     // absolute
};

// Of run folders, of all cells of a sweep, and folders of event files themselves. Each once; names
// are unique. ConfigError for a folder that is not there (with the nearest name beside it) or holds
// none of these; DataError for a run without events.
std::vector<EventFolder> event_folders(const std::vector<fs::path>& given);

// Links to them by their names in `tree`, an empty folder: TensorBoard, told to show it, calls the
// runs by these names alone. MachineError when one cannot be made.
void link_event_folders(const std::vector<EventFolder>& folders, const fs::path& tree);

// How it is started: `tensorboard` in PATH, in $VIRTUAL_ENV, in .venv beside the folder of this
// program, or `python3 -m tensorboard.main` where python3 has it. Empty: there is none.
std::vector<std::string> find_tensorboard();

// `wanted`, or the first port from 6006 on that nobody listens on. MachineError when `wanted` is
// in use, or ten in a row are.
int choose_port(std::optional<int> wanted);

// TensorBoard's ssh line for another machine: "ssh -L 6006:localhost:6006 user@host".
std::string tunnel_line(int port);

}  // namespace lockstep
