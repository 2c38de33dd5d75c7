// Finds the user's TensorBoard, and prepares the events of runs for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

struct EventFolder {
  std::string name;  // as TensorBoard shows it: the name of the run's folder
  fs::path path;     // absolute
};

// Returns the events of run folders, of all cells of a sweep, and of folders of event files, each
// once and with unique names. Throws ConfigError for a folder that does not exist (with the nearest
// name beside it) or holds none of these, DataError for a run without events.
std::vector<EventFolder> event_folders(const std::vector<fs::path>& given);

// Links to the folders by their names in `tree`, an empty folder, so that TensorBoard, when shown
// `tree`, calls the runs by these names alone. Throws MachineError when a link cannot be made.
void link_event_folders(const std::vector<EventFolder>& folders, const fs::path& tree);

// Returns the command that starts TensorBoard: `tensorboard` in PATH, in $VIRTUAL_ENV, in .venv
// beside the folder of this program, or `python3 -m tensorboard.main` where python3 has it. Empty:
// not found.
std::vector<std::string> find_tensorboard();

// Returns `wanted`, or the first port from 6006 on that nobody listens on. Throws MachineError when
// `wanted` is in use, or ten ports in a row are.
int choose_port(std::optional<int> wanted);

// Returns the ssh command to view TensorBoard from another machine: "ssh -L 6006:localhost:6006
// user@host".
std::string tunnel_line(int port);

}  // namespace lockstep
