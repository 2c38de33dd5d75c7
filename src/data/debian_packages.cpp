#include "data/debian_packages.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

extern char** environ;

namespace lockstep {

namespace {

struct Outcome {
  int status = 0;      // exit status; 128 + signal when it was killed
  std::string output;  // standard output and standard error together
};

std::string read_to_end(int fd) {
  std::string out;
  std::array<char, 4096> buffer;
  while (true) {
    ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

// Runs a program to its end in `folder` without a shell. Throws MachineError when it cannot start.
Outcome run_program(const std::vector<std::string>& words, const fs::path& folder) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw MachineError("no pipe for {}: {}", words[0], std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    MachineError failure("{} cannot be started: {}", words[0], std::strerror(error));
    failure.set_advice(
        "a Debian or Ubuntu machine, or copy the files there: --packages-dir DIR "
        "(.deb files) or --catalogs DIR (.mo files)");
    throw failure;
  }
  Outcome out;
  out.output = read_to_end(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

// PACKAGE_VERSION_ARCHITECTURE.deb; the newest file when the cache holds several versions.
std::optional<fs::path> cached_package(const std::string& name, const fs::path& cache) {
  std::optional<fs::path> newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache)) {
    const fs::path& path = entry.path();
    bool right = path.extension() == ".deb" && path.filename().string().starts_with(name + "_");
    if (!right) continue;
    if (!newest || fs::last_write_time(path) > fs::last_write_time(*newest)) newest = path;
  }
  return newest;
}

// The last lines, so that a message stays readable.
std::string tail(std::string_view output) {
  std::vector<std::string> lines = split(trim(output), '\n');
  std::size_t first = lines.size() > 6 ? lines.size() - 6 : 0;
  return join({lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end()}, "\n    ");
}

}  // namespace

std::vector<fs::path> fetch_packages(const std::vector<std::string>& names, const fs::path& cache) {
  std::vector<std::string> command{"apt-get", "download"};
  // Without this, apt run by root warns that its own user cannot write into the cache.
  if (::geteuid() == 0) command.insert(command.end(), {"-o", "APT::Sandbox::User=root"});
  std::size_t fixed = command.size();
  for (const std::string& name : names) {
    if (!cached_package(name, cache)) command.push_back(name);
  }
  if (command.size() > fixed) {
    std::string wanted =
        join({command.begin() + static_cast<std::ptrdiff_t>(fixed), command.end()}, " ");
    log_info("fetching the Debian packages {} (apt-get download; not installed)", wanted);
    Outcome outcome = run_program(command, cache);
    if (outcome.status != 0) {
      MachineError error("the Debian packages {} cannot be fetched", wanted);
      error.add_context("running apt-get download");
      error.set_cause(tail(outcome.output));
      error.set_advice(
          "apt-get update (as root), look at the network, name other packages with "
          "--packages, or use files from elsewhere with --packages-dir");
      throw error;
    }
  }
  std::vector<fs::path> out;
  for (const std::string& name : names) {
    std::optional<fs::path> path = cached_package(name, cache);
    if (!path) {
      throw MachineError("apt-get downloaded no file {}_*.deb into {}", name, cache.string());
    }
    out.push_back(*path);
  }
  return out;
}

std::vector<fs::path> find_packages(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) throw DataError("{}: cannot be read: {}", folder.string(), error.message());
  std::vector<fs::path> out;
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() == ".deb") out.push_back(entry.path());
  }
  if (out.empty()) throw DataError("{}: no Debian package (*.deb) in it", folder.string());
  std::sort(out.begin(), out.end());
  return out;
}

void unpack_package(const fs::path& package, const fs::path& folder) {
  std::vector<std::string> command{"dpkg-deb", "-x", fs::absolute(package).string(),
                                   fs::absolute(folder).string()};
  Outcome outcome = run_program(command, folder);
  if (outcome.status == 0) return;
  DataError error("{}: cannot be unpacked", package.string());
  error.set_cause(tail(outcome.output));
  error.set_advice("remove the file, so that it is fetched again");
  throw error;
}

}  // namespace lockstep
