#include "base/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {

std::optional<std::string> find_in_path(const std::string& name) {
  auto runs = [](const std::string& path) {
    return ::access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path);
  };
  if (name.find('/') != std::string::npos) return runs(name) ? std::optional(name) : std::nullopt;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/bin:/bin", ':')) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (runs(candidate)) return candidate;
  }
  return std::nullopt;
}

ProgramEnd run_to_end(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw MachineError("no pipe: {}", std::strerror(errno));
  Descriptor ours(ends[0]), theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDERR_FILENO);
  pid_t pid = -1;
  const int failed =
      ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw MachineError("{}: cannot be started: {}", words[0], std::strerror(failed));
  theirs.close();
  ProgramEnd out;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = ::read(ours.get(), buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) out.said.append(buffer, static_cast<std::size_t>(n));
  }
  while (::waitpid(pid, &out.status, 0) < 0 && errno == EINTR) {
  }
  return out;
}

}  // namespace lockstep
