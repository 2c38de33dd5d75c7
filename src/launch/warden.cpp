#include "launch/warden.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace lockstep {

namespace {

// The warden's whole life. Only async-signal-safe calls and memory from before the fork.
// Messages are pid_t: positive to watch a group, negative to forget it.
[[noreturn]] void guard(int channel, std::vector<pid_t>& groups) {
  ::setsid();  // Ctrl-C and a hangup of the terminal are not for the warden
  ::prctl(PR_SET_NAME, "lockstep-warden");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  if (channel > 0) ::close_range(0, static_cast<unsigned>(channel) - 1, 0);
  ::close_range(static_cast<unsigned>(channel) + 1, ~0u, 0);
  for (;;) {
    pid_t message = 0;
    ssize_t size = ::read(channel, &message, sizeof message);  // whole: below PIPE_BUF
    if (size < 0 && errno == EINTR) continue;
    if (size != sizeof message) break;
    pid_t wanted = message > 0 ? 0 : -message;  // 0: a free place
    auto place = std::find(groups.begin(), groups.end(), wanted);
    if (place != groups.end()) *place = message > 0 ? message : 0;
  }
  for (pid_t group : groups) {
    if (group > 0) ::kill(-group, SIGKILL);
  }
  ::_exit(0);
}

}  // namespace

Warden::Warden(int most_groups) {
  std::vector<pid_t> groups(static_cast<std::size_t>(most_groups), 0);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw MachineError("cannot open a pipe: {}", std::strerror(errno));
  }
  Descriptor reading(ends[0]);
  channel_ = Descriptor(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) guard(reading.get(), groups);
  if (pid_ < 0) throw MachineError("cannot start a process: {}", std::strerror(errno));
}

Warden::~Warden() {
  channel_.close();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Warden::watch(pid_t group) { tell(group); }

void Warden::forget(pid_t group) { tell(-group); }

void Warden::tell(pid_t number) {
  write_all(channel_.get(), {reinterpret_cast<const char*>(&number), sizeof number});
}

}  // namespace lockstep
