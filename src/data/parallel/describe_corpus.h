// Describes a prepared corpus to its user.
#pragma once

#include <string>

#include "data/manifest/manifest.h"

namespace lockstep {

// Returns a table: what was read, dropped and kept, the splits, and where there are many sources
// the kinds and the largest of them.
std::string describe_corpus(const Manifest& m);

}  // namespace lockstep
