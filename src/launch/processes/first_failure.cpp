#include "launch/processes/first_failure.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstring>

#include "base/error.h"

namespace lockstep {

namespace {

constexpr int kSignalBase = 128;  // a program that handles a signal exits with this and its number

bool by_signal(const RankEnd& end) { return WIFSIGNALED(end.status); }

bool succeeded(const RankEnd& end) { return WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0; }

// Returns whether we told the rank to stop and it did, by itself or by force.
bool obeyed(const RankEnd& end) {
  if (!end.told_to_stop) return false;
  if (by_signal(end)) return WTERMSIG(end.status) == SIGTERM || WTERMSIG(end.status) == SIGKILL;
  return WEXITSTATUS(end.status) == kSignalBase + SIGTERM;
}

const char* meaning(int code) {
  switch (code) {
    case kExitConfig:
      return "command line or configuration";
    case kExitData:
      return "an input file is missing, damaged or unusable";
    case kExitMachine:
      return "a device, peer, port or disk failed";
    case kExitDiverged:
      return "the training diverged";
    case kExitInternal:
      return "a bug";
    default:
      return nullptr;
  }
}

}  // namespace

bool may_be_consequence(const RankEnd& end) {
  return WIFEXITED(end.status) && WEXITSTATUS(end.status) == kExitMachine;
}

std::optional<RankEnd> first_failure(const std::vector<RankEnd>& ends) {
  std::optional<RankEnd> first, by_itself, killed;
  for (const RankEnd& end : ends) {
    if (succeeded(end) || obeyed(end)) continue;
    if (!first) first = end;
    if (end.time - first->time > kCascade) break;
    if (by_signal(end) && !killed) killed = end;
    if (!may_be_consequence(end) && !by_itself) by_itself = end;
  }
  if (!first || !may_be_consequence(*first)) return first;
  if (killed) return killed;
  return by_itself ? by_itself : first;
}

int exit_code_for(const RankEnd& end) {
  return by_signal(end) ? static_cast<int>(kExitMachine) : WEXITSTATUS(end.status);
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe_end(const RankEnd& end) {
  if (by_signal(end)) return fmt::format("was killed by {}", signal_name(WTERMSIG(end.status)));
  int code = WEXITSTATUS(end.status);
  if (const char* what = meaning(code)) return fmt::format("exited with code {} ({})", code, what);
  if (code > kSignalBase && code < kSignalBase + NSIG) {
    return fmt::format("exited with code {} (stopped by {})", code,
                       signal_name(code - kSignalBase));
  }
  return fmt::format("exited with code {}", code);
}

std::string advice_for(const RankEnd& end) {
  if (!by_signal(end)) return "";
  switch (WTERMSIG(end.status)) {
    case SIGKILL:
      return "if nobody killed it, the system was out of memory (dmesg tells): fewer ranks or "
             "smaller batches";
    case SIGILL:
      return "was the program built for another processor? build it on this machine";
    case SIGBUS:
      return "is the disk full, or was a data file cut while it was mapped?";
    default:
      return "";
  }
}

}  // namespace lockstep
