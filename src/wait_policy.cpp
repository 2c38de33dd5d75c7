// How long OpenMP's threads spin at the end of a parallel loop before they sleep. libgomp's own
// 300,000 turns keep a core busy for milliseconds: alone that is harmless, but beside another busy
// program a run falls far below its share, for its threads spend their time slices waiting for one
// another. 10,000 turns bridge the gaps between the loops of a step and cost nothing alone
// (docs/training.md#where-the-speed-comes-from).
//
// libgomp reads the variable once, while the libraries of the program start, and the values that
// the C library gives to them are those that the program was executed with. So the program executes
// itself once more with the variable set. That happens in .preinit_array, before any library has
// started: 3 ms, where the start of libtorch takes 200.
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace {

constexpr const char* kSpinCount = "GOMP_SPINCOUNT=10000";

bool names(const char* entry, const char* variable) {
  const std::size_t length = std::strlen(variable);
  return std::strncmp(entry, variable, length) == 0 && entry[length] == '=';
}

// The C library has not started either: no memory of its own, no environ; system calls alone.
__attribute__((no_sanitize("address", "undefined", "thread"))) void set_wait_policy(
    int, char** argv, char** variables) {
  std::size_t count = 0;
  for (; variables[count] != nullptr; ++count) {
    const char* entry = variables[count];
    if (names(entry, "GOMP_SPINCOUNT") || names(entry, "OMP_WAIT_POLICY")) {
      return;  // as the user, or the program that we were, wants it
    }
    // Under valgrind /proc/self/exe is valgrind.
    if (names(entry, "LD_PRELOAD") && std::strstr(entry, "vgpreload") != nullptr) return;
  }
  constexpr std::size_t kMost = 4096;
  static const char* with_ours[kMost];
  if (count + 2 > kMost) return;
  std::memcpy(with_ours, variables, count * sizeof(char*));
  with_ours[count] = kSpinCount;
  ::execve("/proc/self/exe", argv, const_cast<char**>(with_ours));
}  // where it cannot be executed the program goes on with libgomp's own

}  // namespace

__attribute__((section(".preinit_array"),
               used)) static void (*const kStartHook)(int, char**, char**) = set_wait_policy;
