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
  std::vector<int> inherited;
  int output[2], failure;
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

[[noreturn]] void become_program(Start& start) {
  ::setpgid(0, 0);
  if (start.killer != nullptr) start.killer->watch(::getpid());
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
  for (int descriptor : start.inherited) ::fcntl(descriptor, F_SETFD, 0);
  if (start.pinned && ::sched_setaffinity(0, sizeof start.cores, &start.cores) != 0) {
    fail_start(start);
  }
  ::execve(start.arguments[0], start.arguments.data(), start.environment.data());
  fail_start(start);
  ::_exit(127);
}

// Waits until exec has closed the pipe, or reads why exec failed.
void check_started(Ends& failure, pid_t pid, OrphanKiller* killer, const std::string& program) {
  failure.theirs.close();
  int cause = 0;
  ssize_t size = 0;
  do {
    size = ::read(failure.ours.get(), &cause, sizeof cause);
  } while (size < 0 && errno == EINTR);
  if (size != sizeof cause) return;
  if (killer != nullptr) killer->forget(pid);
  ::waitpid(pid, nullptr, 0);
  throw MachineError("{}: cannot be started: {}", program, std::strerror(cause));
}

}  // namespace

pid_t start_program(const ProgramStart& program, OrphanKiller* killer) {
  Ends failure = open_stream();
  Start start{};
  start.arguments = pointers(program.words);
  start.environment = pointers(program.environment);
  start.output[0] = program.output;
  start.output[1] = program.errors;
  start.inherited = program.inherited;
  start.failure = failure.theirs.get();
  start.killer = killer;
  start.launcher = ::getpid();
  start.pinned = !program.cores.empty();
  CPU_ZERO(&start.cores);
  for (int core : program.cores) CPU_SET(core, &start.cores);

  pid_t pid = ::fork();
  if (pid == 0) become_program(start);
  if (pid < 0) throw MachineError("cannot start a process: {}", std::strerror(errno));
  ::setpgid(pid, pid);  // here and in the child; whichever comes second changes nothing
  check_started(failure, pid, killer, program.words.front());
  return pid;
}

RankStreams open_streams(const RankCommand& command) {
  RankStreams out;
  for (int i : {0, 1}) {
    Ends ends = command.terminal[static_cast<std::size_t>(i)]
                    ? open_terminal(command.rows, command.columns)
                    : open_stream();
    out.process.output[static_cast<std::size_t>(i)] = std::move(ends.ours);
    out.theirs[static_cast<std::size_t>(i)] = std::move(ends.theirs);
  }
  Ends reports = open_stream();
  out.process.reports = std::move(reports.ours);
  out.theirs[2] = std::move(reports.theirs);
  return out;
}

RankProcess start_rank(const RankCommand& command, OrphanKiller& killer) {
  RankStreams streams = open_streams(command);
  const int reports = streams.theirs[2].get();
  ProgramStart start{.words = command.words,
                     .environment = command.environment,
                     .cores = command.cores,
                     .output = streams.theirs[0].get(),
                     .errors = streams.theirs[1].get(),
                     .inherited = {reports}};
  start.environment.push_back(fmt::format("LOCKSTEP_REPORT_FD={}", reports));
  if (command.inherited >= 0) start.inherited.push_back(command.inherited);
  streams.process.pid = start_program(start, &killer);
  return std::move(streams.process);
}

}  // namespace lockstep
