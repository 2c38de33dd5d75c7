#include "base/write_failure.h"

#include <cerrno>
#include <cstring>

namespace lockstep {

MachineError write_failure(const std::filesystem::path& path, int cause) {
  MachineError error("{}: cannot be written: {}", path.string(), std::strerror(cause));
  std::error_code none;
  const std::filesystem::path place = std::filesystem::temp_directory_path(none);
  const bool full = cause == ENOSPC || cause == EDQUOT;
  if (full && !none && path.string().starts_with((place / "lockstep-").string())) {
    error.set_advice("TMPDIR=FOLDER, where there is more room for what is kept for a while");
  }
  return error;
}

}  // namespace lockstep
