// The error of a file that cannot be written.
#pragma once

#include <filesystem>

#include "base/error.h"

namespace lockstep {

// `cause` is an errno. Where a disk is full and the file is in a TemporaryFolder, the error names
// the variable that leads elsewhere.
MachineError write_failure(const std::filesystem::path& path, int cause);

}  // namespace lockstep
