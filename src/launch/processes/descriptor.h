// Where launch/ finds Descriptor, and its write that waits.
#pragma once

#include <string_view>

#include "base/descriptor.h"

namespace lockstep {

// Writes all of `bytes`, waiting where the reader is slow. False when nobody will read any more.
bool write_all(int descriptor, std::string_view bytes);

}  // namespace lockstep
