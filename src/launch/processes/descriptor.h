// Gives launch/ Descriptor and a blocking write.
#pragma once

#include <string_view>

#include "base/descriptor.h"

namespace lockstep {

// Writes all of `bytes`, waiting for a slow reader. Returns false when nobody reads any more.
bool write_all(int descriptor, std::string_view bytes);

}  // namespace lockstep
