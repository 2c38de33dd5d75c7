// Says in our words that the current folder was removed, perhaps to be made anew, after the shell
// went there. MKL looks for its files by that folder while it starts, and ends the process in words
// that name libtorch. So this happens in .preinit_array, before any library has started.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/error.h"

namespace {

constexpr std::string_view kGone =
    "error: the current folder was removed after this shell went there\n"
    "  try: cd to it again, if it is there anew, or to another\n";

// The C library has not started: system calls alone.
__attribute__((no_sanitize("address", "undefined", "thread"))) void check_current_folder(int,
                                                                                         char**,
                                                                                         char**) {
  char here[4096];
  if (::syscall(SYS_getcwd, here, sizeof here) >= 0 || errno != ENOENT) return;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kGone.data(), kGone.size());
  ::_exit(lockstep::kExitMachine);
}

}  // namespace

__attribute__((section(".preinit_array"),
               used)) static void (*const kStartHook)(int, char**, char**) = check_current_folder;
