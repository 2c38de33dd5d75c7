#include "launch/job/rank_process.h"

#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "launch/processes/child_process.h"

namespace lockstep {

namespace {

struct Ends {
  Descriptor ours, theirs;
};

Ends open_stream() {
  Pipe pipe = open_pipe();
  return {std::move(pipe.read_end), std::move(pipe.write_end)};
}

// Opens a pseudo-terminal that passes bytes unchanged.
Ends open_terminal(int rows, int columns) {
  int ours = -1, theirs = -1;
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  if (::openpty(&ours, &theirs, nullptr, nullptr, columns > 0 ? &size : nullptr) != 0) {
    throw MachineError("cannot open a pseudo-terminal: {}", std::strerror(errno));
  }
  Ends ends{Descriptor(ours), Descriptor(theirs)};
  ::fcntl(ours, F_SETFD, FD_CLOEXEC);
  ::fcntl(theirs, F_SETFD, FD_CLOEXEC);
  termios mode{};
  ::tcgetattr(theirs, &mode);
  ::cfmakeraw(&mode);
  ::tcsetattr(theirs, TCSANOW, &mode);
  return ends;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// All that the new process needs, made before the fork: after the fork nothing may allocate.
struct Start {
  std::vector<char*> arguments, environment;
  int output[2], inherited, reports, failure;
  OrphanKiller* killer;
  pid_t launcher;
  bool pinned;
  cpu_set_t cores;
};

void fail_start(const Start& start) {
  int cause = errno;
  ssize_t ignored = ::write(start.failure, &cause, sizeof cause);
  static_cast<void>(ignored);
  ::_exit(127);
}

[[noreturn]] void become_rank(Start& start) {
  ::setpgid(0, 0);
  start.killer->watch(::getpid());
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != start.launcher) ::_exit(127);  // it died before prctl
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, 0) < 0) fail_start(start);
  if (nothing > 2) ::close(nothing);
  if (::dup2(start.output[0], 1) < 0 || ::dup2(start.output[1], 2) < 0) fail_start(start);
  if (start.inherited >= 0) ::fcntl(start.inherited, F_SETFD, 0);
  ::fcntl(start.reports, F_SETFD, 0);
  if (start.pinned && ::sched_setaffinity(0, sizeof start.cores, &start.cores) != 0) {
    fail_start(start);
  }
  ::execve(start.arguments[0], start.arguments.data(), start.environment.data());
  fail_start(start);
  ::_exit(127);
}

// Waits until exec has closed the pipe, or reads why exec failed.
void check_started(Ends& failure, pid_t pid, OrphanKiller& killer, const std::string& program) {
  failure.theirs.close();
  int cause = 0;
  ssize_t size = 0;
  do {
    size = ::read(failure.ours.get(), &cause, sizeof cause);
  } while (size < 0 && errno == EINTR);
  if (size != sizeof cause) return;
  killer.forget(pid);
  ::waitpid(pid, nullptr, 0);
  throw MachineError("{}: cannot be started: {}", program, std::strerror(cause));
}

}  // namespace

RankProcess start_rank(const RankCommand& command, OrphanKiller& killer) {
  Ends streams[2];
  for (int i : {0, 1}) {
    streams[i] = command.terminal[i] ? open_terminal(command.rows, command.columns) : open_stream();
  }
  Ends failure = open_stream(), reports = open_stream();
  std::vector<std::string> environment = command.environment;
  environment.push_back(fmt::format("LOCKSTEP_REPORT_FD={}", reports.theirs.get()));
  Start start{};
  start.arguments = pointers(command.words);
  start.environment = pointers(environment);
  for (int i : {0, 1}) start.output[i] = streams[i].theirs.get();
  start.inherited = command.inherited;
  start.reports = reports.theirs.get();
  start.failure = failure.theirs.get();
  start.killer = &killer;
  start.launcher = ::getpid();
  start.pinned = !command.cores.empty();
  CPU_ZERO(&start.cores);
  for (int core : command.cores) CPU_SET(core, &start.cores);

  pid_t pid = ::fork();
  if (pid == 0) become_rank(start);
  if (pid < 0) throw MachineError("cannot start a process: {}", std::strerror(errno));
  ::setpgid(pid, pid);  // here and in the child; whichever comes second changes nothing
  check_started(failure, pid, killer, command.words.front());
  RankProcess process;
  process.pid = pid;
  for (int i : {0, 1}) process.output[i] = std::move(streams[i].ours);
  process.reports = std::move(reports.ours);
  return process;
}

}  // namespace lockstep
