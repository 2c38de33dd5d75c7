// The C library that this program needs of a machine.
#pragma once

#include <string>

namespace lockstep {

// Returns the newest version of glibc's symbols that this program or a library that it has loaded
// asks for: "2.34". The C library's own files do not count. Empty when none is found.
std::string needed_libc();

}  // namespace lockstep
