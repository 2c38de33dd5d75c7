#include "commands/reports/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/cleanup_process.h"
#include "report/live/tensorboard.h"

namespace lockstep {

namespace {

// Rejects options that this program sets itself.
void check_passed_on(const Arguments& passed_on) {
  for (const std::string& word : passed_on) {
    const std::string name = word.substr(0, word.find('='));
    if (name == "--port") throw ConfigError("-- {}: say --port before the --", word);
    if (name == "--logdir" || name == "--logdir_spec") {
      throw ConfigError("-- {}: the runs before the -- say what is shown", word);
    }
  }
}

MachineError no_tensorboard() {
  MachineError error(
      "no TensorBoard: none in PATH, in $VIRTUAL_ENV, in .venv beside this program's folder, nor "
      "in python3");
  error.set_advice(
      "python3 -m venv ~/tensorboard && ~/tensorboard/bin/pip install tensorboard, and then "
      "PATH=~/tensorboard/bin:$PATH");
  return error;
}

// Makes a new folder below the system's temporary one.
fs::path make_link_folder() {
  std::error_code failed;
  const fs::path below = fs::temp_directory_path(failed);
  if (failed) throw MachineError("no temporary folder: {}", failed.message());
  std::string name = (below / "lockstep-tensorboard-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw MachineError("{}: cannot be made: {}", name, std::strerror(errno));
  }
  return name;
}

// Removes `folder`, which holds links, when this process has ended, even if it has become another
// program.
CleanupProcess remove_at_end(const fs::path& folder) {
  return CleanupProcess("links", [folder](int channel) {
    char byte = 0;
    while (::read(channel, &byte, 1) < 0 && errno == EINTR) {
    }
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  });
}

// Does not return; throws on failure.
[[noreturn]] void become(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  throw MachineError("{}: cannot be started: {}", words.front(), std::strerror(errno));
}

}  // namespace

int tensorboard(const Arguments& arguments) {
  const auto gap = std::find(arguments.begin(), arguments.end(), "--");
  const Arguments own(arguments.begin(), gap);
  const Arguments passed_on(gap == arguments.end() ? gap : gap + 1, arguments.end());
  std::vector<std::string> runs;
  std::optional<int> port;
  CommandLine app(
      "Starts your TensorBoard on the events of runs (docs/run-folder.md); words after -- are "
      "passed on to it.",
      "lockstep tensorboard");
  app.add_option("runs", runs, "run folders, folders of sweeps or of event files")->required();
  app.add_option("--port", port, "of the page (default: the first free one from 6006 on)")
      ->range(1, 65535);
  if (!app.parse(own)) return kExitOk;
  check_passed_on(passed_on);

  const std::vector<EventFolder> folders = event_folders({runs.begin(), runs.end()});
  std::vector<std::string> words = find_tensorboard();
  if (words.empty()) throw no_tensorboard();
  const int chosen = choose_port(port);
  for (const EventFolder& folder : folders) {
    fmt::print("{:<20} {}\n", folder.name, folder.path.string());
  }
  fmt::print("TensorBoard: http://localhost:{}/\n", chosen);
  fmt::print("from another machine: {}   and the same address there\n", tunnel_line(chosen));
  std::fflush(stdout);
  const fs::path links = make_link_folder();
  const CleanupProcess remover = remove_at_end(links);
  link_event_folders(folders, links);
  ::fcntl(remover.channel(), F_SETFD, 0);  // TensorBoard keeps it open until it ends
  words.insert(words.end(), {"--logdir", links.string(), "--port", std::to_string(chosen)});
  words.insert(words.end(), passed_on.begin(), passed_on.end());
  become(words);
}

}  // namespace lockstep
