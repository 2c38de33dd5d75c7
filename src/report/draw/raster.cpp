#include "report/draw/raster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr const char* kProgram = "rsvg-convert";

}  // namespace

bool can_rasterise() {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    if (::access((fs::path(folder) / kProgram).c_str(), X_OK) == 0) return true;
  }
  return false;
}

void rasterise(const fs::path& svg, const fs::path& png, double scale) {
  const fs::path words_file = png.string() + ".tmp";
  std::vector<std::string> words = {kProgram,   "--zoom",     fmt::format("{}", scale),
                                    "--output", png.string(), svg.string()};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, words_file.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, kProgram, &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw MachineError("{}: cannot be started: {}", kProgram, std::strerror(failed));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string said = fs::exists(words_file) ? read_file(words_file) : "";
  fs::remove(words_file);
  if (status != 0) {
    throw MachineError("{}: cannot be drawn: {} says: {}", png.string(), kProgram, trim(said));
  }
}

}  // namespace lockstep
