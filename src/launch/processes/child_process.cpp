#include "launch/processes/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/program.h"

namespace lockstep {

Pipe open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw MachineError("cannot open a pipe: {}", std::strerror(errno));
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor memory_file(const std::string& content) {
  Descriptor out(::memfd_create("lockstep", MFD_CLOEXEC));
  if (!out.open() || !write_all(out.get(), content) || ::lseek(out.get(), 0, SEEK_SET) != 0) {
    throw MachineError("no memory for a file: {}", std::strerror(errno));
  }
  return out;
}

std::string text_of_memory_file(int file, std::size_t most) {
  const off_t end = ::lseek(file, 0, SEEK_END);
  std::string out(std::min(most, static_cast<std::size_t>(std::max<off_t>(end, 0))), '\0');
  const ssize_t size = ::pread(file, out.data(), out.size(), 0);
  out.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return out;
}

std::string find_program(const std::string& name) {
  if (std::optional<std::string> found = find_in_path(name)) return *found;
  if (name.find('/') != std::string::npos)
    throw ConfigError("{}: no program that can be run", name);
  throw ConfigError("no program \"{}\" in PATH", name);
}

pid_t start_process(std::vector<std::string> words, int input, int output, int errors) {
  words[0] = find_program(words[0]);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) throw MachineError("cannot start a process: {}", std::strerror(errno));
  if (pid > 0) {
    ::setpgid(pid, pid);
    return pid;
  }
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::dup2(input, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(errors, 2) < 0) ::_exit(127);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace lockstep
