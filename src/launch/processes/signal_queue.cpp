#include "launch/processes/signal_queue.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lockstep {

SignalQueue::SignalQueue(const std::vector<int>& signals) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int signal : signals) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler == SIG_IGN && signal != SIGCHLD) continue;
    sigaddset(&wanted, signal);
  }
  ::signal(SIGCHLD, SIG_DFL);  // if ignored, the kernel would reap our children before we see them
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before_);
  descriptor_ = Descriptor(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (descriptor_.open()) return;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  throw MachineError("cannot receive signals: {}", std::strerror(errno));
}

SignalQueue::~SignalQueue() {
  while (next() != 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalQueue::next() {
  signalfd_siginfo info{};
  ssize_t size = ::read(descriptor_.get(), &info, sizeof info);
  return size == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace lockstep
