// What a command threw, as a person and a script learn of it (docs/errors.md).
#pragma once

#include <functional>

namespace lockstep {

// Calls `work` and returns its exit code. Where it throws, the message goes to standard error, and
// the code is that of the error; kExitInternal for what should not happen.
int exit_code_of(const std::function<int()>& work);

}  // namespace lockstep
