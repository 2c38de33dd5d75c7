// Tells machines apart.
#pragma once

#include <string>

namespace lockstep {

// Returns a key that is equal for processes that can see each other and each other's network: those
// of one boot of one kernel, in one PID namespace and one network namespace. Namespaces that stand
// for machines thus stay separate. Empty where this cannot be determined (no /proc).
std::string machine_key();

}  // namespace lockstep
