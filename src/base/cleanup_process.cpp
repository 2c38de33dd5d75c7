#include "base/cleanup_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lockstep {

CleanupProcess::CleanupProcess(const std::string& name, const std::function<void(int)>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw MachineError("cannot open a pipe: {}", std::strerror(errno));
  }
  Descriptor reading(ends[0]);
  channel_ = Descriptor(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw MachineError("cannot start a process: {}", std::strerror(errno));
  if (pid_ > 0) return;
  ::setsid();  // it must not receive Ctrl-C or the terminal's hangup
  ::prctl(PR_SET_NAME, name.c_str());
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const int channel = reading.get();
  if (channel > 0) ::close_range(0, static_cast<unsigned>(channel) - 1, 0);
  ::close_range(static_cast<unsigned>(channel) + 1, ~0U, 0);
  work(channel);
  ::_exit(0);
}

CleanupProcess::~CleanupProcess() {
  channel_.close();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace lockstep
