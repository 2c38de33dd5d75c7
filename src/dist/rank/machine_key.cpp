#include "dist/rank/machine_key.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace lockstep {
namespace {

ino_t namespace_of(const char* path) {
  struct stat status {};
  if (stat(path, &status) != 0) throw MachineError("cannot look at {}", path);
  return status.st_ino;
}

}  // namespace

std::string machine_key() {
  try {
    return fmt::format("{}/{}/{}", trim(read_file("/proc/sys/kernel/random/boot_id")),
                       namespace_of("/proc/self/ns/pid"), namespace_of("/proc/self/ns/net"));
  } catch (const Error&) {
    return "";
  }
}

}  // namespace lockstep
